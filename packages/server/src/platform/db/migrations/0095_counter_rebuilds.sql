-- How often a counter was rebuilt: of two rebuilds that counted at once, the second changes nothing.
alter table usage_counters add column rebuilds integer not null default 0;
