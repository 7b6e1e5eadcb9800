"""Words that exclude each other when they are said of one thing: word → (which pair, which side) (4-history, conflicts)."""

from __future__ import annotations

OPPOSITES = {
    word: (number, side)
    for number, sides in enumerate(
        (
            (
                "deleted delete deletes erased erase purged purge removed destroyed "
                "gelöscht löschen löscht vernichtet effacé effacées effacés effacer supprimé supprimées supprimés "
                "удаляются удаляем удаляется удалять удалены удалить стираются 删除 清除 销毁 削除 消去",
                "kept keep keeps retained retain stored preserved archived "
                "aufbewahrt aufbewahren behalten gespeichert archiviert conservé conservées conservés conserver gardé "
                "хранятся храним хранится хранить сохраняются 保存 保留 留存 保管",
            ),
            (
                "allowed allow permitted permit erlaubt gestattet zulässig autorisé autorisés autorisées permis "
                "разрешено разрешены разрешен разрешена 允许 允許 許可 可能",
                "forbidden prohibited banned disallowed blocked verboten untersagt interdit interdits interdites "
                "запрещено запрещены запрещен запрещена 禁止 不得 严禁",
            ),
            (
                "free gratis kostenlos gratuit gratuite gratuits gratuites бесплатный бесплатно бесплатная 免费 無料",
                "paid cost costs charged kostenpflichtig kostet payant payante payants payantes платный платно платная "
                "收费 有料",
            ),
            (
                "open offen geöffnet ouvert ouverte ouverts ouvertes открыт открыто открыты 开放",
                "closed restricted reserved geschlossen vorbehalten fermé fermée réservé réservée réservés закрыт закрыто закрыты "
                "限制",
            ),
            (
                "enabled enable on aktiviert eingeschaltet activé activée activés включен включена включено 启用 开启 有効",
                "disabled disable off deaktiviert ausgeschaltet abgeschaltet désactivé désactivée отключен отключена отключено "
                "выключен 禁用 关闭 停用 無効",
            ),
            (
                "office person onsite site büro präsenz vor-ort bureau présentiel personne офисе офис очно 办公室 现场 線下 线下 会議室 "
                "会议室 対面 オフィス",
                "remote remotely online home virtual homeoffice online fern distance ligne visioconférence télétravail онлайн удаленно "
                "удаленке дистанционно 线上 远程 在线 オンライン リモート 在宅",
            ),
            (
                "public öffentlich öffentliche publique public публичный публично открытый 公开 公開",
                "private internal privat intern interne privé privée закрытый приватный внутренний 私有 内部 非公開",
            ),
            (
                "manual manually hand manuell händisch manuel manuelle manuellement вручную ручной 手动 人工 手動 手作業",
                "automatic automatically automated automatisch automatisiert automatique automatiquement автоматически "
                "автоматический 自动 自動",
            ),
            (
                "required mandatory compulsory pflicht verpflichtend erforderlich obligatoire obligatoires обязательно обязателен "
                "обязательна обязательны 必须 必需 強制 必須",
                "optional voluntary freiwillig optional facultatif facultative facultatives необязательно добровольно "
                "可选 自愿 任意 自由",
            ),
            (
                "always immer stets toujours всегда 总是 始终 常に 必ず",
                "never nie niemals jamais никогда 从不 绝不 決して",
            ),
            (
                "encrypted verschlüsselt chiffré chiffrée chiffrés chiffrées зашифрованы зашифрован шифруются 加密 暗号化",
                "plaintext unencrypted cleartext plain klartext unverschlüsselt clair открытом незашифрованы 明文 平文",
            ),
            (
                "central centrally centralized zentral zentralisiert centralisé centralisée централизованно 集中",
                "local locally decentralized lokal dezentral local locale локально локальном 本地 分散 ローカル",
            ),
            (
                "monthly monatlich mensuel mensuelle mensuellement ежемесячно 每月 毎月",
                "annually yearly jährlich jahresende annuel annuelle annuellement ежегодно 每年 年末 毎年",
            ),
        )
    )
    for side, words in enumerate(sides)
    for word in words.split()
}
