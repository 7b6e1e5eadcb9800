-- Distributes the tables of the store by project. Run once, after `lethe migrate`, on the coordinator: psql -v schema=lethe -f distribute.sql
\set ON_ERROR_STOP on
CREATE EXTENSION IF NOT EXISTS citus;
SET search_path TO :schema, public;

-- Which projects there are, and whose an object is: asked by statements that name no project.
SELECT create_reference_table('project');
SELECT create_reference_table('object_project');
SELECT create_reference_table('migration');

SELECT create_distributed_table('changeset', 'project_id');
SELECT create_distributed_table(name, 'project_id', colocate_with => 'changeset')
FROM unnest(ARRAY[
    'ref', 'ref_log', 'op', 'version', 'edge', 'node', 'claim', 'version_words', 'event', 'conflict', 'conflict_proposal', 'redaction',
    'redacted_memory', 'manifest', 'merge_nonce', 'memory_protected_ref_advances', 'assembly', 'write_mark'
]) AS name;

-- What is not distributed has no key that begins with the project: there must be none left.
SELECT tablename AS left_out FROM pg_tables
WHERE schemaname = :'schema' AND to_regclass(format('%I.%I', schemaname, tablename)) NOT IN (SELECT logicalrelid FROM pg_dist_partition);
