import { createServer } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sellersOf } from '../../server/test/official-sellers.ts'
import { aTransferStage, stranger, type TransferStage } from '../../server/test/transfer-stage.ts'
import { aPayer } from '../../server/test/wallet-payment-stage.ts'
import { purserOf } from './stage.ts'

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
