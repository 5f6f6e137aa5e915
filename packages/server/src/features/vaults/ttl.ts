import { instantOf } from '../../platform/clock.ts'
import { type Plan, unlimited } from '../plans/index.ts'
import { fail } from './errors.ts'
import type { Deps, TtlBounds } from './ports.ts'

/** Milliseconds before a vault's end at which `vault.expiring` is due. */
const warningMs = 3_600_000

/** The end of a vault, and the time at which that is reported; null if it is reported at once, since the end is an hour away or less. */
export interface Lifetime {
  readonly expiresAt: Date
  readonly expiringDue: Date | null
}

/** Returns the configured bounds for the plan, otherwise the plan's own. */
function ttlBoundsOf(deps: Pick<Deps, 'vaultTtls'>, plan: Plan): TtlBounds {
  const { vaultTtlSecondsDefault: secondsDefault, vaultTtlSecondsMax: secondsMax } = plan
  return deps.vaultTtls?.[plan.name] ?? { secondsDefault, secondsMax }
}

/** Returns a lifetime from now on, of these seconds or the plan's default. Refuses more than the plan grants. */
export function lifetimeFrom(
  ctx: Pick<Deps, 'vaultTtls' | 'clock'>,
  plan: Plan,
  ttlSeconds: number | undefined,
): Lifetime {
  const { secondsDefault, secondsMax } = ttlBoundsOf(ctx, plan)
  const seconds = ttlSeconds ?? secondsDefault
  if (secondsMax !== unlimited && seconds > secondsMax) throw fail('ttl-exceeds-plan', { maxSeconds: secondsMax })
  const expiresAt = instantOf(ctx.clock.now().getTime() + seconds * 1_000)
  const isSoon = seconds * 1_000 <= warningMs
  return { expiresAt, expiringDue: isSoon ? null : instantOf(expiresAt.getTime() - warningMs) }
}
