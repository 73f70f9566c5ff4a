-- +goose Up

-- What the program remembers from one start to the next; no part of the
-- configuration.
CREATE TABLE note (
    name TEXT NOT NULL PRIMARY KEY,
    text TEXT NOT NULL
);
