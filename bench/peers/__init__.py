"""The peers, each in the best configuration that is durable; imported in a worker only."""
