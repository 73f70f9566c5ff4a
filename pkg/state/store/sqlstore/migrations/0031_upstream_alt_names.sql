-- +goose Up

-- The default is that for upstreams that are there already.
ALTER TABLE upstream ADD COLUMN validation_alt_names TEXT NOT NULL DEFAULT '';
