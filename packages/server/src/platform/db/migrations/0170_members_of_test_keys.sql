-- Whether the person works in the live environment too. One whom a test key invited does not, until a person, a live key or the operator
-- gives them a role.
alter table members add column is_live boolean not null default true;
