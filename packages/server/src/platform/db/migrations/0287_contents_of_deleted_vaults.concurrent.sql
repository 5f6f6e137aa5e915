-- A vault has up to a million events and a hundred thousand documents. One statement that deletes them with the vault exceeds the limit of time. The
-- trigger queues the contents of a deleted vault, and background work deletes them in batches. The version before deletes the vault alone, too.
create table if not exists deleted_vaults (
  vault_id text primary key,
  organisation_id text not null,
  environment text not null
);
create index if not exists deleted_vaults_by_tenant on deleted_vaults (organisation_id, environment, vault_id);
create or replace function queue_vault_contents() returns trigger language plpgsql as $$
begin
  insert into deleted_vaults (vault_id, organisation_id, environment) values (old.id, old.organisation_id, old.environment) on conflict do nothing;
  return null;
end $$;
create or replace trigger queue_contents after delete on vaults for each row execute function queue_vault_contents();
-- A foreign key is dropped under the locks of both tables. Each block takes them in the order of the requests, which lock a vault before its contents.
-- It waits for the second for less than `deadlock_timeout`, so that no request that takes them in the other order fails; the block is tried again.
do $$ begin
  lock table vaults in access exclusive mode;
  set local lock_timeout = '500ms';
  alter table vault_events drop constraint if exists vault_events_vault_id_fkey;
end $$;
do $$ begin
  lock table vaults in access exclusive mode;
  set local lock_timeout = '500ms';
  alter table vault_documents drop constraint if exists vault_documents_vault_id_fkey;
end $$;
