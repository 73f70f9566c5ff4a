-- +goose Up

-- The defaults are those for proxies that are there already.
ALTER TABLE proxy ADD COLUMN escaped_slashes TEXT NOT NULL DEFAULT 'redirect';
ALTER TABLE proxy ADD COLUMN underscore_headers TEXT NOT NULL DEFAULT 'reject';
