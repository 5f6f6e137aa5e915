import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RouteStatus } from '../../src/partners/routing/port.ts'
import { aPartnerStage, bridgeOf, type PartnerStage, swapOf } from '../partner-stage.ts'

let stage: PartnerStage

beforeAll(async () => {
  stage = await aPartnerStage()
})
afterAll(() => stage?.stop())

test('a status for which a partner does not answer delays neither the steps nor the outcomes of other transfers', async () => {
  const [patient, buyer, other] = [await stage.aMaster(), await stage.aMaster(), await stage.aMaster()]
  const response = Promise.withResolvers<void>()
  const queried = Promise.withResolvers<void>()
  const hang = async (own: () => Promise<RouteStatus>): Promise<RouteStatus> => {
    queried.resolve()
    await response.promise
    return own()
  }
  stage.conduct = { status: hang }
  const waiting = await stage.send(bridgeOf(patient))
  await queried.promise
  stage.conduct = {}

  const sold = await stage.send(swapOf(buyer, { fromToken: 'USDC', toToken: 'ETH', amount: '30' }))
  expect([sold.status, sold.body.status]).toEqual([201, 'confirmed'])
  const bridged = await stage.send(bridgeOf(other))
  await stage.relayer.pass()
  expect(await stage.ended(bridged)).toMatchObject({ status: 'confirmed', toAmount: '49.95' })
  expect((await stage.get(waiting)).status).toBe('pending')

  response.resolve()
  expect(await stage.ended(waiting)).toMatchObject({ status: 'confirmed' })
})
