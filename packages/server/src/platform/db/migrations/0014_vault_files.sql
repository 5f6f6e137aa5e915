-- Uploads under way, and the tokens that open one vault to whoever holds them.

-- A blob that may be there and is bound to no vault yet: written before the first byte is stored, taken away in the transaction
-- that binds the file, so that whatever a crash leaves is named here. No reference to the vault: it may be deleted meanwhile.
create table vault_uploads (
  blob_key text primary key,
  organisation_id text not null,
  environment text not null,
  vault_id text not null,
  created_at timestamptz not null
);
create index vault_uploads_oldest on vault_uploads (created_at);

create table vault_tokens (
  id text primary key,
  -- SHA-256 of the token's text; the text itself is nowhere.
  token_hash bytea not null unique,
  kind text not null check (kind in ('token', 'ticket')),
  organisation_id text not null,
  environment text not null,
  vault_id text not null references vaults (id) on delete cascade,
  expires_at timestamptz not null,
  -- When a ticket was used; it opens one stream.
  opened_at timestamptz,
  created_at timestamptz not null
);
create index vault_tokens_by_vault on vault_tokens (vault_id);
create index vault_tokens_expired on vault_tokens (expires_at);

-- A repeated upload knows its file's id and not its vault.
create unique index vault_files_by_id on vault_files (id);
