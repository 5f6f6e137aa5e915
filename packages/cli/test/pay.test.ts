import { createServer, type ServerResponse } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sellersOf } from '../../server/test/official-sellers.ts'
import { aTransferStage, stranger, type TransferStage } from '../../server/test/transfer-stage.ts'
import { aPayer, challengeOf, offer } from '../../server/test/wallet-payment-stage.ts'
import { purserOf, ran } from './stage.ts'

let stage: TransferStage
const sellers = sellersOf(() => stage)
beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia', config: { webhooksAllowPrivate: true } })
})
afterAll(async () => {
  await sellers.close()
  await stage?.stop()
})

test('a URL of the official x402 server is paid from a managed wallet, and its goods are printed', async () => {
  const { child } = await aPayer(stage)
  const url = `${await sellers.officialShop(stranger())}/report`
  const pay = (...args: readonly string[]) =>
    purserOf({ PURSER_API_KEY: stage.key, PURSER_BASE_URL: stage.world.base }, [
      'pay',
      url,
      '--wallet',
      child.id,
      ...args,
    ])
  const once = ['--max', '0.05', '--idempotency-key', 'report-1']
  const first = await pay(...once)
  expect(first).toMatchObject({ code: 0, stderr: '' })
  expect(first.stdout).toMatch(/^wtx_\w+: 0\.01 USDC, \w+\nHTTP 200\n\n/)
  const again = JSON.parse((await pay(...once, '--format', 'json')).stdout)
  expect(again).toMatchObject({ outcome: 'paid', response: { status: 200 } })
  expect(first.stdout).toContain(again.id)
  expect(await pay('--max', '0.001')).toMatchObject({ code: 1, stderr: expect.stringMatching(/req_/) })
  expect(await pay()).toMatchObject({ code: 2, stderr: expect.stringContaining('Give --wallet and --max.') })
})

test('a URL that costs nothing is printed, and one that fails exits with 1', async () => {
  const { child } = await aPayer(stage)
  const free = await sellers.serve(
    createServer(({ url }, res) => res.writeHead(url === '/gone' ? 410 : 200).end('goods\n')),
  )
  const pay = (url: string) =>
    purserOf({ PURSER_API_KEY: stage.key, PURSER_BASE_URL: stage.world.base }, [
      'pay',
      url,
      '--wallet',
      child.id,
      '--max',
      '1',
    ])
  expect(await pay(free)).toEqual({ code: 0, stdout: 'Nothing was paid.\nHTTP 200\n\ngoods\n\n', stderr: '' })
  expect(await pay(`${new URL('/gone', free)}`)).toMatchObject({ code: 1 })
})

test('a payment whose seller is slower than the first attempts is waited for, and paid once', async () => {
  const { child } = await aPayer(stage)
  const served: ServerResponse[] = []
  const unpaid = challengeOf(offer())
  const url = await sellers.serve(
    createServer(({ headers }, res) => {
      if (headers['payment-signature'] === undefined) res.writeHead(402, unpaid.headers).end('{}')
      else served.push(res)
    }),
  )
  const refusals: number[] = []
  let lost: Promise<unknown> | undefined
  /** Loses the response to the first attempt. The seller responds when three more attempts were refused. */
  const unreliable: typeof fetch = async (input, init) => {
    if (lost === undefined) {
      lost = fetch(input, { ...init, signal: null })
      await expect.poll(() => served.length, { timeout: 20_000 }).toBe(1)
      throw new TypeError('fetch failed')
    }
    const response = await fetch(input, init)
    if (!response.ok) refusals.push(response.status)
    if (refusals.length === 3) served[0]?.end('goods')
    return response
  }
  const env = { PURSER_API_KEY: stage.key, PURSER_BASE_URL: stage.world.base }
  const paid = await ran(['pay', url, '--wallet', child.id, '--max', '1'], { env, fetch: unreliable })
  expect(paid).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/HTTP 200\n\ngoods/) })
  await lost
  expect([refusals.every((status) => status === 409), served.length]).toEqual([true, 1])
})
