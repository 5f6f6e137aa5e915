import { expect, test } from 'vitest'
import type { Stage } from './people-scenarios.ts'
import { openReceiver } from './receiver.ts'
import { manyHolds, settledWithOthers } from './states.ts'

/** Questions of people about payments: which came in, where one is, and how it goes over time. */
export function paymentScenarios({ dev, purserOf, open }: Stage): void {
  test('payments are filtered by status, network, payer and key, and the address keeps the filters', async () => {
    const paid = await purserOf().test.payments.create({ walletId: dev().walletId, price: '0.03' })
    await open({}, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/test/payments?payer=${paid.payer}`)
      const rows = page.getByRole('table', { name: 'Payments', exact: true }).getByRole('row')
      await rows.filter({ hasText: '0.03 USDC' }).first().waitFor()
      await page.getByLabel('Network').selectOption(paid.chain)
      await page.getByLabel('API key').selectOption({ label: 'First test key' })
      await page.getByLabel('Status').selectOption('voided')
      await page.getByText('No payment matches these filters').waitFor()
      await page.reload()
      await page.getByText('No payment matches these filters').waitFor()
      expect(await page.getByLabel('Status').inputValue()).toBe('voided')
      expect(await page.getByLabel('Payer').inputValue()).toBe(paid.payer)
      await page.getByLabel('Status').selectOption('')
      await rows.filter({ hasText: '0.03 USDC' }).first().waitFor()
      expect(new URL(page.url()).search).toContain(`chain=${paid.chain}`)
      expect(faults).toEqual([])
    })
  })

  test('a list of settled payments shows a payment once it is settled', async () => {
    await open({}, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/test/payments?status=settled`)
      await page.getByText('Live', { exact: true }).waitFor()
      await purserOf().test.payments.create({ walletId: dev().walletId, price: '0.07' })
      const row = page.getByRole('row').filter({ hasText: '0.07 USDC' })
      await row.getByText('Settled').waitFor()
      expect(faults).toEqual([])
    })
  })

  test('Home says which of its readings failed, and reads again what is wanted', async () => {
    const purser = purserOf()
    await purser.test.payments.create({ walletId: dev().walletId, price: '0.01' })
    await open({}, async (page) => {
      const refused = { status: 400, json: {} }
      await page.route('**/payments/logs/summary?*', (route) => route.fulfill(refused))
      await page.route('**/wallet-infra/holds', (route) => route.fulfill(refused))
      await page.goto(`${dev().dashboardUrl}/test?by=route`)
      await page.getByRole('link', { name: 'The money on hold could not be loaded.' }).waitFor()
      const volume = page.locator('section').filter({ has: page.getByLabel('Measure') })
      await volume.getByRole('alert').waitFor()
      await page.unrouteAll()
      await volume.getByRole('button', { name: 'Try again' }).click()
      await page.getByRole('img', { name: /by route, last 24 hours$/ }).waitFor()
    })
  })

  test('a payment shows its challenge, checks, block, events and the attempts to deliver them', async () => {
    const receiver = await openReceiver((_, response) => response.end('fine'))
    const purser = purserOf()
    const webhook = await purser.webhooks.create({ url: `http://${receiver.host}/paid`, events: ['payment.settled'] })
    try {
      const { id } = await purser.test.payments.create({ walletId: dev().walletId, price: '0.04' })
      await expect.poll(async () => (await purser.payments.get(id)).status).toBe('settled')
      await expect.poll(async () => (await purser.webhooks.attempts.list(webhook.id).page()).items.length).toBe(1)
      await open({}, async (page, { faults }) => {
        await page.goto(`${dev().dashboardUrl}/test/payments/${id}`)
        await page.getByText('402: 0.04 USDC requested').waitFor()
        await page.getByText('Funds of the payer').waitFor()
        await page.getByText(/^In block \d/).waitFor()
        await page.getByRole('link', { name: 'payment.received' }).waitFor()
        await page.getByRole('link', { name: 'payment.settled' }).waitFor()
        await page.getByRole('link', { name: `${receiver.host}/paid: the endpoint returned 200` }).click()
        await page.getByRole('dialog', { name: 'Attempt' }).waitFor()
        expect(faults).toEqual([])
      })
    } finally {
      await purser.webhooks.delete(webhook.id)
      receiver.close()
    }
  })

  test('a payment that a transaction settled with others leads to them, and its receipt is verified in the browser', async () => {
    const purser = purserOf()
    const { id } = await purser.test.payments.create({ walletId: dev().walletId, price: '0.05' })
    await expect.poll(async () => (await purser.payments.get(id)).status).toBe('settled')
    const { batchId, batchPayments } = await purser.payments.get(id)
    await open({}, async (page, { faults }) => {
      await settledWithOthers(page)
      await page.goto(`${dev().dashboardUrl}/test/payments/${id}`)
      await page.getByRole('button', { name: 'Verify here' }).click()
      await page.getByText('Verified: the service signed this.').waitFor()
      await page.getByRole('link', { name: '38 other payments' }).click()
      await page.waitForURL((url) => url.searchParams.get('batchId') === batchId)
      const rows = page.getByRole('table', { name: 'Payments', exact: true }).getByRole('row')
      await rows.filter({ hasText: '0.05 USDC' }).first().waitFor()
      expect(await rows.count()).toBe(batchPayments + 1)
      await page.getByRole('button', { name: 'One transaction: show all payments' }).click()
      await page.waitForURL((url) => url.search === '')
      expect(faults).toEqual([])
    })
  })

  test('Home sums the money on hold of any number of wallets', async () => {
    await open({}, async (page, { faults }) => {
      await page.route('**/wallet-infra/holds', (route) => route.fulfill({ json: manyHolds }))
      await page.goto(`${dev().dashboardUrl}/test`)
      await page.getByText('Money is on hold in more than 240 wallets.').waitFor()
      await page.getByText('Show the newest 100').click()
      const listed = page.locator('details').getByRole('listitem')
      await listed.filter({ hasText: 'Treasury of the north' }).getByText('15.25 USDC').waitFor()
      await page.unrouteAll()
      await page.route('**/wallet-infra/holds', (route) =>
        route.fulfill({ json: { wallets: 1, isWhole: true, amounts: manyHolds.amounts.slice(0, 1) } }),
      )
      await page.reload()
      await page.getByRole('link', { name: '15.25 USDC of Treasury of the north is on hold.' }).waitFor()
      expect(faults).toEqual([])
    })
  })

  test('a chart has the width of its card in each picture that is painted', async () => {
    await open({}, async (page) => {
      await page.goto(`${dev().dashboardUrl}/test`)
      const chart = page.getByRole('img', { name: /by protocol, last 24 hours$/ })
      await chart.waitFor()
      // An observer that begins later sees the page as it is painted.
      const painted = await chart.evaluate(async (svg) => {
        const frame = svg.parentElement as HTMLElement
        const widths: (readonly [chart: number, card: number])[] = []
        new ResizeObserver(() => widths.push([Number(svg.getAttribute('width')), frame.clientWidth])).observe(frame)
        const frames = async () => {
          for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame)
        }
        await frames()
        frame.style.width = '280px'
        await frames()
        frame.hidden = true
        await frames()
        frame.style.width = '320px'
        frame.hidden = false
        await frames()
        return widths.filter(([, card]) => card > 0)
      })
      expect(painted.length).toBeGreaterThanOrEqual(3)
      expect(painted.filter(([drawn, card]) => drawn !== card)).toEqual([])
    })
  })

  test('Home shows volume by token and route, and the way from the challenge to the money', async () => {
    const purser = purserOf()
    const challenge = { walletId: dev().walletId, price: '0.01', resource: 'https://a.example/x' }
    for (let count = 0; count < 20; count++) await purser.payments.challenge(challenge)
    await open({}, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/test`)
      await page.getByRole('img', { name: 'Settled USDC by protocol, last 24 hours' }).waitFor()
      await page.getByLabel('By', { exact: true }).selectOption('route')
      await page.getByRole('img', { name: 'Settled USDC by route, last 24 hours' }).waitFor()
      await page.getByLabel('Measure').selectOption('payments')
      await page.getByRole('img', { name: 'Payments by route, last 24 hours' }).waitFor()
      expect(new URL(page.url()).search).toBe('?by=route&measure=payments')
      const funnel = page
        .locator('section')
        .filter({ has: page.getByRole('heading', { name: 'From challenge to settlement' }) })
      await expect
        .poll(async () => Number(/402 issued\s+([\d,]+)/.exec(await funnel.innerText())?.[1]?.replaceAll(',', '')))
        .toBeGreaterThanOrEqual(20)
      await page.getByRole('heading', { name: 'Gas paid by the operator' }).waitFor()
      expect(faults).toEqual([])
    })
  })
}
