-- A vault token ends with whoever made it, and can be revoked.

alter table vault_tokens
  -- The API key or the account; null for tokens from before, which live a day at most.
  add column made_by text,
  add column revoked_at timestamptz;
