-- Keys may be limited to scopes and may expire; a revoked key can take along what it made.

alter table api_keys
  -- Null for all scopes.
  add column scopes text[],
  add column expires_at timestamptz,
  -- The keys by which it was made: its maker, the maker's maker, and so on; without those that were revoked a week before.
  add column made_by_keys text[] not null default '{}',
  -- The last of them.
  add column made_by text references api_keys (id);
create index api_keys_valid on api_keys (organisation_id, environment, (coalesce(expires_at, 'infinity'))) where revoked_at is null;
