import { createServer } from 'node:http'
import { tokenBalance } from '@purser/devnet'
import { evm as evmClient, Fetch } from 'mppx/client'
import { evm, Mppx } from 'mppx/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aPayer, aWorld, countByStatus, type DevChain, startChain, type World } from '../../server/test/world.ts'
import { close, listen } from './fake-purser.ts'
import { usdc } from './pay-stage.ts'

let chain: DevChain
let world: World

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const authorization = { name: 'USDC', version: '2' }

test('one credential sent five times to mppx’s own server, with Purser as its facilitator, is paid once', async () => {
  const org = await world.organisation()
  const { address } = await world.wallet(org)
  const { account } = await aPayer(chain)
  const ask = async (verb: string, paymentPayload: unknown, paymentRequirements: unknown) => {
    const body = JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements })
    const headers = { authorization: `Bearer ${org.testKey}`, 'content-type': 'application/json' }
    return (await fetch(`${world.base}/facilitator/${verb}`, { method: 'POST', headers, body })).json()
  }
  const facilitator = {
    verify: (payload: unknown, requirements: unknown) => ask('verify', payload, requirements),
    settle: (payload: unknown, requirements: unknown) => ask('settle', payload, requirements),
  }
  const server = Mppx.create({
    secretKey: 'a secret of at least thirty-two bytes',
    realm: 'seller.test',
    methods: [
      evm.charge({
        currency: usdc.address,
        recipient: address,
        chainId: 84532,
        decimals: 6,
        authorization,
        x402: { facilitator },
      }),
    ],
  })
  let runs = 0
  const charge = Mppx.toNodeListener(server.compose(['evm/charge', { amount: '0.01' }]))
  const shop = createServer(async (req, res) => {
    if ((await charge(req, res)).status === 402) return
    runs++
    res.end('goods')
  })
  const url = await listen(shop)
  const sent: string[] = []
  const paying = Fetch.from({
    methods: evmClient({ account, maxAmount: '1', decimals: 6, authorization }),
    fetch: async (input, init) => {
      const request = new Request(input, init)
      const credential = request.headers.get('authorization')
      if (credential === null) return fetch(request)
      sent.push(credential)
      const copies = Array.from({ length: 5 }, () => fetch(url, { headers: { authorization: credential } }))
      const answers = await Promise.all(copies)
      expect(countByStatus(answers)[200]).toBe(1)
      return answers.find(({ status }) => status === 200) ?? Response.error()
    },
  })
  const before = await tokenBalance(chain, 'USDC', address)
  expect(await (await paying(url)).text()).toBe('goods')
  expect((await tokenBalance(chain, 'USDC', address)) - before).toBe(10_000n)
  const again = await fetch(url, { headers: { authorization: sent[0] ?? '' } })
  expect([again.status, runs, sent.length]).toEqual([402, 1, 1])
  await close(shop)
})
