import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { bridging } from '../../../test/partner-calls.ts'
import { endOn, requestFor, stranger } from '../../../test/routes.ts'
import type { Chain, Simulation } from '../../chain/port.ts'
import { changesOf } from '../../partners/routing/guard.ts'
import { readLifiCall } from '../../partners/routing/lifi-calls.ts'
import { lifiDiamond } from '../../partners/routing/lifi-contracts.ts'
import type { RoutingPartner } from '../../partners/routing/port.ts'
import { createLog } from '../../platform/log.ts'
import { proveCall } from './proof.ts'

const request = requestFor(endOn('base', 'USDC'), endOn('ethereum', 'USDT'))
const { network } = request.from
const call = { chainId: network.chainId, to: lifiDiamond, value: 0n, data: bridging(request) }
const partner: RoutingPartner = {
  name: 'lifi',
  contracts: [],
  quote: () => Promise.reject(new Error('is not called')),
  status: () => Promise.reject(new Error('is not called')),
  expects: (requested, one) =>
    changesOf(one, requested, { targets: [lifiDiamond], read: (data) => readLifiCall(data, network) }),
}

function prove(simulated: Simulation, changed = call) {
  const lines: string[] = []
  const destination = new PassThrough()
  destination.on('data', (line: Buffer) => lines.push(line.toString('utf8')))
  const chain: Pick<Chain, 'network' | 'simulate'> = { network, simulate: async () => simulated }
  return proveCall({ log: createLog({ level: 'trace', destination }) }, chain, partner, {
    ...{ request, before: [], call: changed },
  })
}

test.each<readonly [readonly bigint[], string]>([
  [[-10_000_000n, 10_000_000n], 'proven'],
  [[-10_000_001n, 10_000_000n], 'differs'],
  [[-9_999_999n, 10_000_000n], 'differs'],
  [[-10_000_000n, 9_999_999n], 'differs'],
  [[-10_000_000n, 10_000_001n], 'differs'],
  [[-10_000_000n, 0n], 'differs'],
  [[-10_000_000n], 'differs'],
])('changes of %o are %s', async (changes, outcome) => {
  expect(await prove({ outcome: 'ran', changes })).toEqual({ outcome })
})

test('a call that the chain refuses, or that no node can simulate, is not proven', async () => {
  expect(await prove({ outcome: 'refused', reason: 'no' })).toEqual({ outcome: 'refused', reason: 'no' })
  expect(await prove({ outcome: 'unable' })).toEqual({ outcome: 'unable' })
})

test('a call that differs from the request is not simulated', async () => {
  const ran: Simulation = { outcome: 'ran', changes: [-10_000_000n, 10_000_000n] }
  expect(await prove(ran, { ...call, to: stranger })).toEqual({ outcome: 'differs' })
  expect(await prove(ran, { ...call, value: 1n })).toEqual({ outcome: 'differs' })
})
