import { networkByName } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { cctpContracts } from '../../src/partners/routing/cctp-calls.ts'
import { aCctpStage, type CctpStage, usualFee } from '../cctp-stage.ts'
import type { Burnt } from '../iris.ts'
import { type LyingNode, startLyingNode } from '../lying-node.ts'
import { bridgeOf } from '../partner-stage.ts'

// Ethereum has three nodes, of which the first lies.
let stage: CctpStage
let liar: LyingNode

beforeAll(async () => {
  stage = await aCctpStage(async (url) => {
    liar = await startLyingNode(url)
    return [liar.url, url, url]
  })
})
afterAll(async () => {
  await stage?.stop()
  await liar?.stop()
})
beforeEach(() => stage.renew())
afterEach(() => liar.tellTheTruth())

function isOfCircle([call]: readonly unknown[]): boolean {
  const ethereum = networkByName('ethereum')
  if (ethereum === undefined) throw new Error('no such network')
  return String(Object(call).to).toLowerCase() === cctpContracts(ethereum).messageTransmitter.toLowerCase()
}

/** Reports each message as delivered in the newest block, and too little gas for a claim of it. */
function inventDeliveries(): void {
  const one = { result: `0x${'1'.padStart(64, '0')}` }
  liar.lie('eth_call', ({ params, truth }) => (isOfCircle(params) && params[1] === 'latest' ? one : truth()))
  liar.lie('eth_estimateGas', ({ params, truth }) => (isOfCircle(params) ? { result: '0xea60' } : truth()))
}

/** Reports each message as not delivered, and a claim of it as one that the contract accepts. */
function hideDeliveries(): void {
  const zero = { result: `0x${'0'.repeat(64)}` }
  liar.lie('eth_call', ({ params, truth }) => (isOfCircle(params) ? zero : truth()))
  liar.lie('eth_estimateGas', ({ params, truth }) => (isOfCircle(params) ? { result: '0x30d40' } : truth()))
}

test('a node that hides a delivery makes no master pay for claims of it, and the transfer ends', async () => {
  const master = await stage.aTraveller()
  const body = bridgeOf(master)
  let burnt: Burnt | undefined
  let isAttested = false
  stage.iris.says = (one) => {
    burnt = one
    return isAttested ? one.complete(usualFee) : one.pending()
  }
  const sent = await stage.send(body)
  await stage.untilPartnerStatus(sent, 'pending_confirmations')
  if (burnt === undefined) throw new Error('no request came')
  await stage.claimAsStranger(burnt)
  await stage.mine(5)
  hideDeliveries()
  isAttested = true
  const ended = await stage.ended(sent).catch(() => undefined)
  expect([await stage.claimsOf(master), ended?.status]).toEqual([0, 'confirmed'])
})

test('a node that invents a delivery, and reports too little gas for its claim, keeps no money from arriving', async () => {
  const master = await stage.aTraveller()
  stage.iris.says = (one) => one.complete(usualFee)
  inventDeliveries()
  const ended = await stage.ended(await stage.send(bridgeOf(master))).catch(() => undefined)
  expect([await stage.claimsOf(master), ended?.status]).toEqual([1, 'confirmed'])
})
