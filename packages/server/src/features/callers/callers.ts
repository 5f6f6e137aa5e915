import { type Call, callerId } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { failPlatform } from '../../platform/errors.ts'
import { unauthorized } from '../../platform/http/authenticate.ts'
import { isSignedOut, type LeastRole, listEndedRequesters, type Requester } from './store.ts'

/** A call, as far as its caller and tenant. */
type CallerOf = Pick<Call, 'actor' | 'person' | 'tenant'>

/**
 * Refuses a caller who lost access since the call was admitted: 401 if the API key was revoked or the person signed out, 403 if the person's membership
 * or role ended. For the transaction that stores what lasts, after its locks: planning a movement and waiting for a lock take seconds.
 */
export async function refuseEndedCaller(ctx: CallerOf, tx: Tx, leastRole?: LeastRole): Promise<void> {
  for (const refusal of (await refusalsOfEnded(tx, [{ ctx }], leastRole)).values()) throw refusal
}

/**
 * As `refuseEndedCaller`, for what a person does without an organisation: no membership is needed. 401 if the API key was revoked or the person signed
 * out.
 */
export async function refuseEndedAccount(ctx: CallerOf, tx: Tx): Promise<void> {
  if (ctx.actor.kind === 'api-key') await refuseEndedCaller(ctx, tx, 'viewer')
  if (ctx.person !== undefined && (await isSignedOut(tx, ctx.person.sessionId))) throw signedOut()
}

/** As `refuseEndedCaller`, by one statement for requests of one tenant that share a transaction: returns the refusals of those that must be refused. */
export async function refusalsOfEnded<R extends { readonly ctx: CallerOf }>(
  tx: Tx,
  requests: readonly R[],
  leastRole?: LeastRole,
): Promise<ReadonlyMap<R, Error>> {
  const callers = new Map(requests.flatMap(({ ctx }) => callerOf(ctx) ?? []).map((one) => [nameOf(one), one]))
  const tenant = requests[0]?.ctx.tenant
  if (tenant === undefined || callers.size === 0) return new Map()
  const ended = await listEndedRequesters(tx, tenant, [...callers.values()], leastRole)
  const refusals = new Map(ended.map((one) => [nameOf(one), refusalOf(one)]))
  return new Map(
    requests.flatMap((request) => {
      const caller = callerOf(request.ctx)
      const refusal = caller && refusals.get(nameOf(caller))
      return refusal === undefined ? [] : [[request, refusal] as const]
    }),
  )
}

function refusalOf({
  sessionId,
  isSignedOut: hasSignedOut,
}: {
  readonly sessionId: string | null
  readonly isSignedOut: boolean
}): Error {
  if (hasSignedOut) return signedOut()
  return sessionId === null
    ? unauthorized('it was revoked before the request had its effect')
    : failPlatform('role-not-allowed')
}

const signedOut = (): Error => unauthorized('the session has ended; sign in again')

/** Returns the API key or the person that makes a call; undefined for work of the service itself. */
function callerOf({ actor, person }: CallerOf): Requester | undefined {
  if (actor.kind !== 'api-key' && actor.kind !== 'person') return undefined
  return { id: callerId(actor), sessionId: person?.sessionId ?? null }
}

function nameOf({ id, sessionId }: { readonly id: string; readonly sessionId: string | null }): string {
  return `${id} ${sessionId ?? ''}`
}
