-- A vault has up to a million events and a hundred thousand documents. One statement that deletes them with the vault exceeds the limit of time. The
-- trigger queues the contents of a deleted vault, and background work deletes them in batches. The version before deletes the vault alone, too.
create table deleted_vaults (
  vault_id text primary key,
  organisation_id text not null,
  environment text not null
);
create index deleted_vaults_by_tenant on deleted_vaults (organisation_id, environment, vault_id);
create function queue_vault_contents() returns trigger language plpgsql as $$
begin
  insert into deleted_vaults (vault_id, organisation_id, environment) values (old.id, old.organisation_id, old.environment) on conflict do nothing;
  return null;
end $$;
create trigger queue_contents after delete on vaults for each row execute function queue_vault_contents();
alter table vault_events drop constraint vault_events_vault_id_fkey;
alter table vault_documents drop constraint vault_documents_vault_id_fkey;
