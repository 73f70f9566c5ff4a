-- +goose Up

-- A table WITHOUT ROWID is an index: an entry of more than 1,002 bytes, as each of an upstream, has a page of 4 KiB for
-- the rest. In a table of rows it has none, and what is stored and written at a large change is half as much.
CREATE TABLE change_log_rows (
    revision INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    actor    TEXT NOT NULL,
    at       TIMESTAMP NOT NULL,
    request  TEXT NOT NULL,
    kind     TEXT NOT NULL,
    name     TEXT NOT NULL,
    before   TEXT,
    after    TEXT,
    parent   TEXT NOT NULL DEFAULT '',
    message  TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (revision, seq)
);
INSERT INTO change_log_rows SELECT revision, seq, actor, at, request, kind, name, before, after, parent, message
FROM change_log ORDER BY revision, seq;
DROP TABLE change_log;
ALTER TABLE change_log_rows RENAME TO change_log;
