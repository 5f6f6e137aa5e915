-- A call that began before the deletion of its organisation turns no webhook on and restores no wallet afterwards (see 0258). The deletion locks only webhooks
-- that are on, so that neither waits for the other.
create or replace trigger refuse_deleted_change before update of is_active on webhooks
  for each row when (new.is_active and not old.is_active) execute function refuse_deleted_organisation();
create or replace trigger refuse_deleted_change before update of retired_at on master_wallets
  for each row when (new.retired_at is null and old.retired_at is not null) execute function refuse_deleted_organisation();
