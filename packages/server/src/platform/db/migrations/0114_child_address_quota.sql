-- Child addresses count toward the plan.
insert into usage_counters (organisation_id, environment, kind, period, used)
select organisation_id, environment, 'childAddresses', 'all', count(*) from child_addresses group by organisation_id, environment
on conflict do nothing;
