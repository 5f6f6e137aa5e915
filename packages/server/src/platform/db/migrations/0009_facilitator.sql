-- `upfront`: an x402 server asked to settle without having asked to verify, so its success is told once.
alter table payments drop constraint payments_door_check;
alter table payments add constraint payments_door_check check (door in ('verify', 'facilitator', 'upfront'));

-- One address may sell several things: an HTTP method each, or a tool of an MCP server each.
alter table discovered_resources add column operation text not null default '';
alter table discovered_resources drop constraint discovered_resources_pkey;
alter table discovered_resources add primary key (organisation_id, environment, resource, type, operation);
