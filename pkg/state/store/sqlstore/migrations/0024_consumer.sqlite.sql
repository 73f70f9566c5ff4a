-- +goose Up

-- groups are as tags are stored. credentials is JSON; the table of references has the identity of each credential.
CREATE TABLE consumer (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT NOT NULL UNIQUE,
    "groups"    TEXT NOT NULL,
    credentials TEXT NOT NULL,
    tags        TEXT NOT NULL,
    create_ts   TIMESTAMP NOT NULL,
    update_ts   TIMESTAMP NOT NULL
);
