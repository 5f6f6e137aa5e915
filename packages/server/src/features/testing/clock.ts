import { type Address, formatAmount, type Network, type TokenInfo } from '@purser/protocol'
import type { z } from 'zod'
import { bringNearer } from './clock-store.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { ClockChange, NewClockChange } from './schema.ts'

/**
 * Advances the test environment of the organisation in time: whatever there waits for a time is nearer by these seconds. The clocks of
 * the service, of chains and of leases stay, and so do the times that a signature covers.
 */
export async function advanceTestClock(ctx: Ctx, { advance }: NewClockChange): Promise<z.input<typeof ClockChange>> {
  if (ctx.tenant.environment !== 'test' || !ctx.hasTestClock) throw fail('test-clock-off')
  return ctx.db.tx(async (tx) => {
    const moved = await bringNearer(tx, ctx.tenant, { now: ctx.clock.now(), seconds: advance })
    await ctx.audit(tx, {
      action: 'test.clock.advance',
      target: ctx.tenant.organisationId,
      details: { advancedSeconds: advance },
    })
    return { advancedSeconds: advance, moved }
  })
}

interface Giving {
  readonly network: Network
  readonly token: TokenInfo
  readonly rawAmount: bigint
  /** The faucet's address. */
  readonly account: Address
}

/** Throws `faucet-empty` unless the faucet has that much of the token. */
export async function refuseEmpty(ctx: Ctx, { network, token, rawAmount, account }: Giving): Promise<void> {
  const [available = 0n] = await ctx.chains.on(network).balances([{ token: token.address, account }])
  if (available >= rawAmount) return
  const shown = (raw: bigint) => formatAmount(raw, token.decimals)
  throw fail('faucet-empty', { token: token.symbol, required: shown(rawAmount), available: shown(available) })
}
