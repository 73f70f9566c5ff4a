-- +goose Up

CREATE TABLE list (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT NOT NULL UNIQUE,
    type      TEXT NOT NULL,
    config    TEXT NOT NULL,
    tags      TEXT NOT NULL,
    create_ts TIMESTAMP NOT NULL,
    update_ts TIMESTAMP NOT NULL
);
