-- A vault's valid tokens are counted before another is made.
create index concurrently if not exists vault_tokens_valid on vault_tokens (vault_id, expires_at) where revoked_at is null;
