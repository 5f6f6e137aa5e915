import { createPurser } from '@purser/sdk'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import type { DemoData } from './demo-data.ts'
import { pages } from './pages.ts'
import type { Stage } from './people-scenarios.ts'
import { joinedAs, pathOf, show } from './stage.ts'

/** Test and live, and who may work where. */
export function environmentScenarios({ dev, browser, open }: Stage, demoData: () => Promise<DemoData>): void {
  const bar = (page: Page) => page.getByText('Everything here is test money on test networks.')
  const accent = (page: Page) =>
    page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue('--accent'))
  const switchTo = async (page: Page, environment: 'Test' | 'Live') => {
    await page.getByRole('button', { name: /(?:Test|Live) environment/ }).click()
    await page.getByRole('menuitem', { name: environment, exact: true }).click()
    await page.waitForURL(new RegExp(`/dashboard/${environment.toLowerCase()}(?:/|$)`))
  }

  test('test and live differ by a bar, a color and words, and the switch keeps the page', async () => {
    await open({}, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/test/payments`)
      await bar(page).waitFor()
      const accentOfTest = await accent(page)
      await switchTo(page, 'Live')
      await page.getByRole('heading', { level: 1, name: 'Payments' }).waitFor()
      await page.getByRole('button', { name: /Live environment/ }).waitFor()
      expect(new URL(page.url()).pathname).toBe('/dashboard/live/payments')
      expect(await bar(page).count()).toBe(0)
      expect(await accent(page)).not.toBe(accentOfTest)
      await switchTo(page, 'Test')
      await bar(page).waitFor()
      expect(new URL(page.url()).pathname).toBe('/dashboard/test/payments')
      expect(await accent(page)).toBe(accentOfTest)
      expect(faults).toEqual([])
    })
  })

  test('the quick start of an organisation without a wallet names the next step, and shows no error', async () => {
    await open({}, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/live/quick-start`)
      await page.getByText('The code needs a wallet that is paid.').waitFor()
      expect(await page.getByRole('alert').count()).toBe(0)
      await page.getByRole('link', { name: 'Add one' }).click()
      await page.waitForURL(/live\/wallets\?kind=own/)
      expect(faults).toEqual([])
    })
  })

  test('a payment to a wallet that was registered as base is on Base Sepolia in test', async () => {
    const { apiKey, baseUrl, dashboardUrl } = dev()
    const purser = createPurser({ apiKey, baseUrl })
    const address = '0x2Fb0e4Bc3c1d5F77B2bD0cB6B5b7F4f5dC1fE1a1'.toLowerCase()
    const wallet = await purser.wallets.byo.create({ address, chain: 'base', supportedTokens: ['USDC'], name: 'Till' })
    const { paymentId } = await purser.payments.verify({
      ...{ protocol: 'x402', credential: 'stub_payment_accepted', price: '0.01', currency: 'USD' },
      ...{ walletId: wallet.id, resource: 'https://api.example.com/till', method: 'GET' },
    })
    await open({}, async (page, { faults }) => {
      await page.goto(`${dashboardUrl}/test/payments?chain=base`)
      const choices = () => page.getByLabel('Network').locator('option').allInnerTexts()
      await expect.poll(choices).toContain('Base Sepolia (base)')
      await page.goto(`${dashboardUrl}/test/payments/${paymentId}`)
      await page
        .getByRole('definition')
        .filter({ hasText: /^Base Sepolia$/ })
        .waitFor()
      expect(faults).toEqual([])
    })
  })

  test('no page of live shows anything of test, not even by its address', async () => {
    const demo = await demoData()
    const { walletId, dashboardUrl, baseUrl } = dev()
    const texts = [
      ...Object.values(demo),
      walletId,
      'Treasury',
      'Customer 7',
      'Supplier 11',
      'Forecast of 23 November',
      'First test key',
    ]
    await open({}, async (page) => {
      const wrongly: string[] = []
      page.on('request', (request) => {
        const { 'x-service-environment': environment } = request.headers()
        if (environment !== undefined && environment !== 'live') wrongly.push(request.url())
      })
      page.on('response', async (response) => {
        if (!response.url().startsWith(baseUrl) || response.request().resourceType() !== 'fetch') return
        // The chain of the audit log is one, and live reads the keys of both: the pages say or choose the environment.
        if (/\/(?:audit-log|api-keys)\b/.test(response.url())) return
        const text = await response.text().catch(() => '')
        // What was not found is named by the refusal.
        if (response.ok())
          wrongly.push(...texts.filter((one) => text.includes(one)).map((one) => `${one} in ${response.url()}`))
      })
      for (const { path } of pages) {
        await show(page, `${dashboardUrl}/live${pathOf(path, demo)}`)
        const text = await page.locator('main').innerText()
        if (!path.startsWith('/audit-log'))
          expect([path, texts.slice(-5).filter((one) => text.includes(one))]).toEqual([path, []])
      }
      expect(wrongly).toEqual([])
    })
  })

  test('an owner makes the first live key in the dashboard, which works in live alone', async () => {
    const { dashboardUrl, baseUrl, walletId } = dev()
    await open({}, async (page, { faults }) => {
      await page.goto(`${dashboardUrl}/test/keys`)
      await switchTo(page, 'Live')
      await page.getByText('No live keys yet').waitFor()
      await page.getByRole('button', { name: 'Create a live key' }).click()
      const sheet = page.getByRole('dialog')
      await sheet.getByText('A live key moves real money.').waitFor()
      await sheet.getByLabel('Name').fill('Server in production')
      await sheet.getByRole('button', { name: 'Create the key' }).click()
      await sheet.getByText('This key is shown once').waitFor()
      const apiKey = await sheet.locator('pre').innerText()
      expect(apiKey).toMatch(/^svc_live_sk_/)
      await sheet.getByRole('button', { name: 'I saved the key' }).click()
      await page
        .getByRole('row')
        .filter({ hasText: 'Server in production' })
        .getByText('Valid', { exact: true })
        .waitFor()
      const purser = createPurser({ apiKey, baseUrl })
      expect((await purser.organisations.current()).id).toBe(dev().organisationId)
      await expect(purser.wallets.byo.get(walletId)).rejects.toMatchObject({ status: 404 })
      await show(page, `${dashboardUrl}/live/payments`)
      const names = () => page.getByLabel('API key').locator('option').allInnerTexts()
      await expect.poll(names).toEqual(['Any key', 'Server in production'])
      await show(page, `${dashboardUrl}/live/keys`)
      await switchTo(page, 'Test')
      await page.getByRole('row').filter({ hasText: 'First test key' }).first().waitFor()
      expect(await page.getByRole('row').filter({ hasText: 'Server in production' }).count()).toBe(0)
      expect(faults).toEqual([])
    })
  })

  test('the first endpoint of live shows its secret, although the list is no longer empty then', async () => {
    await open({}, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/live/webhooks`)
      await page.getByText('No endpoints yet').waitFor()
      await page.getByRole('button', { name: 'Add an endpoint' }).last().click()
      const sheet = page.getByRole('dialog')
      await sheet.getByLabel('Address').fill('https://hooks.example.com/live')
      await sheet.getByRole('button', { name: 'Add the endpoint' }).click()
      await sheet.getByText('whsec_').waitFor()
      expect(faults).toEqual([])
    })
  })

  test('a person whom a test key invited sees nothing of live and makes no key there', async () => {
    const { dashboardUrl, organisationId } = dev()
    const storageState = await joinedAs({ dev, browser }, { email: 'test.only@example.com', role: 'member' })
    await open({ storageState }, async (page) => {
      await page.goto(`${dashboardUrl}/test/keys`)
      await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
      await switchTo(page, 'Live')
      await page.getByRole('heading', { level: 1, name: 'You work in the test environment' }).waitFor()
      expect(await page.getByRole('navigation').count()).toBe(0)
      const statuses = await page.evaluate(async (organisation) => {
        const path = '/organisations/current/api-keys'
        const headers = {
          'content-type': 'application/json',
          'x-service-organisation': organisation,
          'x-service-environment': 'live',
        }
        const body = JSON.stringify({ name: 'Mine', environment: 'live' })
        const made = await fetch(path, { method: 'POST', headers, body })
        const fromTest = await fetch(path, {
          method: 'POST',
          headers: { ...headers, 'x-service-environment': 'test' },
          body,
        })
        return [(await fetch(path, { headers })).status, made.status, fromTest.status]
      }, organisationId)
      expect(statuses).toEqual([403, 403, 403])
      await page.getByRole('button', { name: 'Go to the test environment' }).click()
      await bar(page).waitFor()
    })
  })
}
