-- A vault's valid tokens and unused tickets are counted before another is made; tickets that have opened a stream are no more read.
create index concurrently if not exists vault_tokens_counted on vault_tokens (vault_id, expires_at) where revoked_at is null and opened_at is null;
drop index concurrently if exists vault_tokens_valid;
