-- What left wallets is noted once for each statement, and no longer for each row: a batch of transfers makes one row for each wallet, token and quarter of an hour.
-- The change lasts as long as `create trigger` waits for the writers of policy_reservations.
create function note_policy_usage_of_statement() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into policy_usage_changes (master_wallet_id, token, at, organisation_id, environment, atto_amount)
    select master_wallet_id, token, date_bin('15 minutes', reserved_at, 'epoch'), organisation_id, environment, sum(atto_amount)
    from added where released_at is null group by 1, 2, 3, 4, 5 having sum(atto_amount) <> 0;
  elsif tg_op = 'DELETE' then
    insert into policy_usage_changes (master_wallet_id, token, at, organisation_id, environment, atto_amount)
    select master_wallet_id, token, date_bin('15 minutes', reserved_at, 'epoch'), organisation_id, environment, -sum(atto_amount)
    from removed where released_at is null group by 1, 2, 3, 4, 5 having sum(atto_amount) <> 0;
  else
    insert into policy_usage_changes (master_wallet_id, token, at, organisation_id, environment, atto_amount)
    select master_wallet_id, token, date_bin('15 minutes', reserved_at, 'epoch'), organisation_id, environment, sum(amount)
    from (
      select master_wallet_id, token, reserved_at, organisation_id, environment, -atto_amount as amount from removed where released_at is null
      union all
      select master_wallet_id, token, reserved_at, organisation_id, environment, atto_amount from added where released_at is null
    ) as changed group by 1, 2, 3, 4, 5 having sum(amount) <> 0;
  end if;
  return null;
end $$;

drop trigger note_usage on policy_reservations;
drop function note_policy_usage();
create trigger note_added_usage after insert on policy_reservations referencing new table as added
  for each statement execute function note_policy_usage_of_statement();
create trigger note_removed_usage after delete on policy_reservations referencing old table as removed
  for each statement execute function note_policy_usage_of_statement();
create trigger note_changed_usage after update on policy_reservations referencing old table as removed new table as added
  for each statement execute function note_policy_usage_of_statement();
