import { z } from 'zod'
import { type Db, sql } from '../../src/platform/db/db.ts'

/** States of a whole database, by name: each row of each table, and where each sequence is. */
export interface States {
  keep(name: string): Promise<void>
  /** Puts a kept state back: rows lie on the same pages in the same order, and sequences go on from the same numbers. */
  putBack(name: string): Promise<void>
  /** A digest of the present state. */
  digest(): Promise<string>
}

/** The catalogue says which tables and sequences there are, so that a new migration's belong to a state too. */
export async function openStates(db: Db): Promise<States> {
  for (const text of [views, keepFunction, putBackFunction, digestFunction].flat()) await db.run({ text, values: [] })
  return {
    async keep(name) {
      await db.run(sql`select simulated.keep(${`kept_${name}`})`)
    },
    async putBack(name) {
      await db.run(sql`select simulated.put_back(${`kept_${name}`})`)
    },
    async digest() {
      const { digest } = await db.one(z.object({ digest: z.string() }), sql`select simulated.digest() as digest`)
      return digest
    },
  }
}

const views = [
  `create view simulated.schemas as select oid, nspname from pg_namespace
    where nspname not like 'pg\\_%' and nspname not like 'kept\\_%' and nspname not in ('information_schema', 'simulated')`,
  `create view simulated.tables as select c.oid, format('%I.%I', nspname, relname) as name from pg_class c
    join simulated.schemas s on s.oid = relnamespace where relkind = 'r'`,
  `create view simulated.sequences as select format('%I.%I', schemaname, sequencename) as name, coalesce(last_value, start_value) as value,
    last_value is not null as is_called from pg_sequences join simulated.schemas on nspname = schemaname`,
]

/** Most tables have no row, and no page either. */
const keepFunction = `create function simulated.keep(kept text) returns void language plpgsql as $$
declare one text;
begin
  execute format('drop schema if exists %I cascade', kept);
  execute format('create schema %I', kept);
  execute format('create table %I.sequences as table simulated.sequences', kept);
  for one in select name from simulated.tables where pg_relation_size(oid) > 0 order by name loop
    execute format('create table %I.%I as table %s', kept, one, one);
  end loop;
end $$`

/** A truncated table begins with its first page. Triggers do not run, since what they write is a part of the state. */
const putBackFunction = `create function simulated.put_back(kept text) returns void language plpgsql
set session_replication_role = replica set lock_timeout = '30s' as $$
declare one text; used text;
begin
  select string_agg(name, ', ' order by name) into used from simulated.tables where pg_relation_size(oid) > 0;
  if used is not null then execute format('truncate %s cascade', used); end if;
  for one in select tablename from pg_tables where schemaname = kept and tablename <> 'sequences' order by 1 loop
    execute format('insert into %s overriding system value select * from %I.%I', one, kept, one);
  end loop;
  execute format('select setval(name::regclass, value, is_called) from %I.sequences', kept);
end $$`

const digestFunction = `create function simulated.digest() returns text language plpgsql as $$
declare one text; hash text; whole text := '';
begin
  select string_agg(concat_ws(' ', name, value, is_called), ', ' order by name) into whole from simulated.sequences;
  for one in select name from simulated.tables where pg_relation_size(oid) > 0 order by name loop
    execute format('select md5(string_agg(t::text, chr(10) order by ctid)) from %s t', one) into hash;
    continue when hash is null;
    whole := concat_ws(' ', whole, one, hash);
  end loop;
  return md5(whole);
end $$`
