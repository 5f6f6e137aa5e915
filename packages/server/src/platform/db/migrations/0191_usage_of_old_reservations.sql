-- Reservations from before 0190, appended too, so that nobody waits. Each statement of 0190's reader finds what this adds.
insert into policy_usage_changes (master_wallet_id, token, at, organisation_id, environment, atto_amount)
select master_wallet_id, token, at, organisation_id, environment, sum(atto_amount) from (
  select master_wallet_id, token, date_bin('15 minutes', reserved_at, 'epoch') as at, organisation_id, environment, atto_amount
  from policy_reservations where released_at is null
  union all
  select master_wallet_id, token, at, organisation_id, environment, -atto_amount from policy_usage_changes
  union all
  select master_wallet_id, token, at, organisation_id, environment, -atto_amount from policy_usage
) as parts
group by master_wallet_id, token, at, organisation_id, environment having sum(atto_amount) <> 0;
