import type { Tenant } from '../../platform/ctx.ts'
import type { Log } from '../../platform/log.ts'

/** Most rounds of a run, so that tenants that came meanwhile wait for few of them; the next run continues. */
const roundsMax = 100

/**
 * Serves tenants in turns, each with one small batch, so that a tenant with millions of rows delays nobody. `serve` returns whether more is left. A
 * tenant that fails is logged with `message` and left out of the run. Nobody is served any more once the process stops.
 */
export async function inTurns(
  tenants: readonly Tenant[],
  serve: (tenant: Tenant) => Promise<boolean>,
  {
    log,
    message,
    stopping,
  }: { readonly log: Pick<Log, 'error'>; readonly message: string; readonly stopping: AbortSignal | undefined },
): Promise<void> {
  let left = tenants
  for (let round = 0; round < roundsMax && left.length > 0; round += 1) {
    const next: Tenant[] = []
    for (const tenant of left) {
      if (stopping?.aborted === true) return
      try {
        if (await serve(tenant)) next.push(tenant)
      } catch (error) {
        log.error({ err: error, ...tenant }, message)
      }
    }
    left = next
  }
}
