import type { Chain, LaneCall } from '../../chain/port.ts'
import type { PlannedCall, RouteRequest, RoutingPartner } from '../../partners/routing/port.ts'
import type { Ctx } from '../../platform/ctx.ts'

/**
 * `refused`: the chain would not take the calls. `differs`: they do not change the balances that they must. `unable`: no node simulates, so
 * that nobody can say.
 */
export type Proof =
  | { readonly outcome: 'proven' }
  | { readonly outcome: 'refused'; readonly reason: string | null }
  | { readonly outcome: 'differs' | 'unable' }

/**
 * Has the chain try a partner's call, and what must come before it, and compares the balances that change with those that the call must
 * change by its own bytes. What is not proven is not signed: a contract that reads the same bytes in another way, or a market that pays in
 * another token, shows here.
 */
export async function proveCall(
  { log }: Pick<Ctx, 'log'>,
  chain: Pick<Chain, 'network' | 'simulate'>,
  partner: RoutingPartner,
  asked: { readonly request: RouteRequest; readonly before: readonly LaneCall[]; readonly call: PlannedCall },
): Promise<Proof> {
  const { request, before, call } = asked
  const expected = partner.expects(request, call)
  const said = { partner: partner.name, network: chain.network.name }
  if (expected === undefined) {
    log.error(said, 'a partner’s call is not the one that was requested')
    return { outcome: 'differs' }
  }
  const ran = await chain.simulate(request.fromAddress, [...before, call], expected)
  if (ran.outcome === 'unable') {
    log.error(said, 'no node simulates calls, which a partner’s calls need: eth_simulateV1, or eth_call with overrides')
    return ran
  }
  if (ran.outcome === 'refused') return ran
  const wrong = expected.filter(({ least, most }, index) => {
    const change = ran.changes[index]
    return change === undefined || change < least || (most !== undefined && change > most)
  })
  if (wrong.length === 0) return { outcome: 'proven' }
  const differing = wrong.map(({ token, account }) => `${token} of ${account}`)
  log.error({ ...said, differing }, 'a partner’s call does not change the balances that it must')
  return { outcome: 'differs' }
}
