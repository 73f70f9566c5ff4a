-- +goose Up

-- The default is that for upstreams that are there already.
ALTER TABLE upstream ADD COLUMN proxy_protocol TEXT NOT NULL DEFAULT 'none';
