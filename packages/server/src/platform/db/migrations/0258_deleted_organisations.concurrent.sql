-- When an organisation was deleted. `founder_id`: its first owner, if that was still a member then, who may found another one.
-- Each statement commits by itself: a transaction that locks several tables could deadlock with requests.
alter table organisations add column if not exists deleted_at timestamptz, add column if not exists founder_id text;

-- Nothing is inserted for an organisation that was deleted, nor while it is being deleted: the row is locked against that (FOR UPDATE), and is read again
-- once the lock is free.
create or replace function refuse_deleted_organisation() returns trigger language plpgsql as $$
declare
  deleted timestamptz;
begin
  select deleted_at into deleted from organisations where id = new.organisation_id for key share;
  if deleted is not null then
    raise exception 'organisation % was deleted', new.organisation_id using errcode = 'PU001';
  end if;
  return new;
end $$;
create or replace trigger refuse_deleted before insert on byo_wallets for each row execute function refuse_deleted_organisation();
create or replace trigger refuse_deleted before insert on master_wallets for each row execute function refuse_deleted_organisation();
create or replace trigger refuse_deleted before insert on child_addresses for each row execute function refuse_deleted_organisation();
create or replace trigger refuse_deleted before insert on transfers for each row execute function refuse_deleted_organisation();
create or replace trigger refuse_deleted before insert on withdrawals for each row execute function refuse_deleted_organisation();
create or replace trigger refuse_deleted before insert on bank_accounts for each row execute function refuse_deleted_organisation();
create or replace trigger refuse_deleted before insert on sessions for each row execute function refuse_deleted_organisation();
create or replace trigger refuse_deleted before insert on vaults for each row execute function refuse_deleted_organisation();
create or replace trigger refuse_deleted before insert on webhooks for each row execute function refuse_deleted_organisation();
create or replace trigger refuse_deleted before insert on registry_routes for each row execute function refuse_deleted_organisation();
