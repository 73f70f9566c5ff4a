-- +goose Up

CREATE TABLE proxy_filter (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    proxy     TEXT NOT NULL REFERENCES proxy (name),
    filter    TEXT NOT NULL REFERENCES filter (name),
    create_ts TIMESTAMP NOT NULL,
    update_ts TIMESTAMP NOT NULL,
    UNIQUE (proxy, filter)
);
CREATE INDEX proxy_filter_filter ON proxy_filter (filter);

-- The names of filters of a proxy that do not apply to the service, as tags are stored.
ALTER TABLE service ADD COLUMN exempt_filters TEXT NOT NULL DEFAULT '';
