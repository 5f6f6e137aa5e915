import type { Chain, LaneCall } from '../../chain/port.ts'
import type { ExpectedChange, PlannedCall, RouteRequest, RoutingPartner } from '../../partners/routing/port.ts'
import type { Ctx } from './ports.ts'

/**
 * `refused`: the chain would refuse the calls. `differs`: they do not change the expected balances. `unable`: no node supports simulation.
 */
export type Proof =
  | { readonly outcome: 'proven' }
  | { readonly outcome: 'refused'; readonly reason: string | null }
  | { readonly outcome: 'differs' | 'unable' }

/**
 * Simulates a partner's call and the calls before it, and compares the balance changes with those that the call's own bytes require. Calls
 * that are not proven are not signed: this detects a contract that reads the bytes differently, or a market that pays in another token.
 */
export async function proveCall(
  { log }: Pick<Ctx, 'log'>,
  chain: Pick<Chain, 'network' | 'simulate'>,
  partner: RoutingPartner,
  requested: { readonly request: RouteRequest; readonly before: readonly LaneCall[]; readonly call: PlannedCall },
): Promise<Proof> {
  const { request, before, call } = requested
  const expected = partner.expects(request, call)
  const facts = { partner: partner.name, network: chain.network.name }
  if (expected === undefined) {
    log.error(facts, 'a partner’s call differs from the request')
    return { outcome: 'differs' }
  }
  const ran = await chain.simulate({
    from: request.fromAddress,
    calls: [...before, call],
    readings: expected,
    isExpected: (changes) => differingIn(changes, expected).length === 0,
  })
  if (ran.outcome === 'unable') {
    log.error(
      facts,
      'no node simulates calls, which a partner’s calls need: eth_simulateV1, or eth_call with overrides',
    )
    return ran
  }
  if (ran.outcome === 'refused') return ran
  const wrong = differingIn(ran.changes, expected)
  if (wrong.length === 0) return { outcome: 'proven' }
  const differing = wrong.map(({ token, account }) => `${token} of ${account}`)
  log.error({ ...facts, differing }, 'a partner’s call does not make the expected balance changes')
  return { outcome: 'differs' }
}

/** The expected changes that these changes of the balances, in their order, do not make. */
function differingIn(changes: readonly bigint[], expected: readonly ExpectedChange[]): readonly ExpectedChange[] {
  return expected.filter(({ least, most }, index) => {
    const change = changes[index]
    return change === undefined || change < least || (most !== undefined && change > most)
  })
}
