-- A vault has up to a hundred thousand files and ten thousand tokens, which foreign keys deleted with it: of fifty vaults in one statement. Background
-- work now deletes them in batches, as it does events and documents. The previous version forgets a deleted vault when its events and documents are gone;
-- the trigger keeps the vault queued until its files and tokens are gone, too.
create or replace function keep_until_empty() returns trigger language plpgsql as $$
begin
  if exists (select from vault_files where vault_id = old.vault_id) or exists (select from vault_tokens where vault_id = old.vault_id) then
    return null;
  end if;
  return old;
end $$;
create or replace trigger keep_until_empty before delete on deleted_vaults for each row execute function keep_until_empty();
-- A foreign key is dropped as in 0287.
do $$ begin
  lock table vaults in access exclusive mode;
  set local lock_timeout = '500ms';
  alter table vault_files drop constraint if exists vault_files_vault_id_fkey;
end $$;
do $$ begin
  lock table vaults in access exclusive mode;
  set local lock_timeout = '500ms';
  alter table vault_tokens drop constraint if exists vault_tokens_vault_id_fkey;
end $$;
