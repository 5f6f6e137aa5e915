import { type Sql, sql } from '../../platform/db/db.ts'
import { onAnyOf } from '../../platform/db/due-checks.ts'

/** A condition: whether any transaction on the networks is not final. */
export function isAnyOpen(networks: readonly string[]): Sql {
  return onAnyOf(
    networks,
    sql`select c.nonce from chain_transactions c where c.network = n.network and c.status <> 'final' order by c.sender, c.nonce limit 1`,
  )
}
