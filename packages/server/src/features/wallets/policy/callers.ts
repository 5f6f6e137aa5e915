import { callerId } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { unauthorized } from '../../../platform/http/authenticate.ts'
import type { Ctx } from '../ports.ts'
import { type LeastRole, listEndedRequesters } from './callers-store.ts'

/** A call, as far as its caller and tenant. */
type CallerOf = Pick<Ctx, 'actor' | 'tenant'>

/**
 * Refuses a caller whose key was revoked, or whose membership or role ended, since the call was admitted. For the transaction that stores a movement,
 * after its locks: planning a movement takes seconds.
 */
export async function refuseEndedCaller(ctx: CallerOf, tx: Tx, leastRole?: LeastRole): Promise<void> {
  for (const refusal of (await refusalsOfEnded(tx, [{ ctx }], leastRole)).values()) throw refusal
}

/** As `refuseEndedCaller`, by one statement for requests of one tenant that share a transaction: returns the refusals of those that must be refused. */
export async function refusalsOfEnded<R extends { readonly ctx: CallerOf }>(
  tx: Tx,
  requests: readonly R[],
  leastRole?: LeastRole,
): Promise<ReadonlyMap<R, Error>> {
  const callers = requests.flatMap(({ ctx }) => callerOf(ctx) ?? [])
  const tenant = requests[0]?.ctx.tenant
  if (tenant === undefined || callers.length === 0) return new Map()
  const ended = await listEndedRequesters(tx, tenant, callers, leastRole)
  const refused = requests.filter(({ ctx }) => ended.has(callerOf(ctx) ?? ''))
  return new Map(refused.map((request) => [request, endedCaller()]))
}

/** Returns the refusal of a caller who lost access since the call was admitted. */
export function endedCaller(): Error {
  return unauthorized('it was revoked, or the role of the person ended, before the request had its effect')
}

/** Returns the API key or the account that makes a call; undefined for work of the service itself. */
function callerOf({ actor }: CallerOf): ReturnType<typeof callerId> | undefined {
  return actor.kind === 'api-key' || actor.kind === 'person' ? callerId(actor) : undefined
}
