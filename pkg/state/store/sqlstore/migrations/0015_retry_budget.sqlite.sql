-- +goose Up

-- The defaults are those for upstreams that are there already.
ALTER TABLE upstream ADD COLUMN retry_budget_percent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE upstream ADD COLUMN retry_budget_min_count INTEGER NOT NULL DEFAULT 3;
