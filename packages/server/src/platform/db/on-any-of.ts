import { anyLength, type Sql, sql } from './db.ts'

/**
 * Condition: whether a query returns a value for any of the networks. It names the network `n.network`, and is ordered and limited to one row, so
 * that an index is read whatever the statistics say.
 */
export function onAnyOf(networks: readonly string[], query: Sql): Sql {
  return sql`exists (select from unnest(${anyLength(networks)}) as n (network) where (${query}) is not null)`
}
