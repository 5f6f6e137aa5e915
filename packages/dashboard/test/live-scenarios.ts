import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { afterEvents, answerPayments, flood, floodedPaymentId } from './flood.ts'
import type { Stage } from './people-scenarios.ts'

const perSecond = 1_000
const rowsInList = 2_000
const paymentIds = Array.from({ length: rowsInList }, (_, index) => floodedPaymentId(index))

/** `length` numbers below `end`, the greatest first. */
function downwards(end: number, length: number): readonly number[] {
  return Array.from({ length }, (_, index) => end - 1 - index)
}

/** What a page does during a thousand events a second. */
export function liveScenarios({ dev, open }: Stage): void {
  /** Counts the changes of the page and its requests, from now until so many events have come. */
  async function during(page: Page, events: number) {
    const requests = new Map<string, number>()
    page.on('request', (request) => {
      const { pathname } = new URL(request.url())
      requests.set(pathname, (requests.get(pathname) ?? 0) + 1)
    })
    await page.evaluate(() => {
      const seen = { changes: 0, since: performance.now() }
      new MutationObserver(() => {
        seen.changes += 1
      }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true })
      Object.assign(globalThis, { seen })
    })
    await afterEvents(page, events)
    const { changes, seconds } = await page.evaluate(() => {
      const { seen } = globalThis as unknown as { seen: { changes: number; since: number } }
      return { changes: seen.changes, seconds: (performance.now() - seen.since) / 1_000 }
    })
    return { changesPerSecond: changes / seconds, seconds, requests }
  }

  /** Answers the list of payments with 2,000 rows, and then with pages of 100 newer ones. */
  async function withLongList(page: Page): Promise<void> {
    const paymentsOf = (reading: number) => downwards(rowsInList + 100 * reading, reading === 0 ? rowsInList : 100)
    await answerPayments(page, paymentsOf, { status: 'verified' })
  }

  test('a thousand events a second change the list of payments a few times a second, and only the rows in view are on the page', async () => {
    await open({}, async (page) => {
      await withLongList(page)
      await flood(page, { perSecond, paymentIds })
      await page.goto(`${dev().dashboardUrl}/test/payments`)
      const rows = page.getByRole('table', { name: 'Payments', exact: true }).getByRole('row')
      await rows.nth(5).waitFor()
      const { changesPerSecond, seconds, requests } = await during(page, 3 * perSecond)
      expect(changesPerSecond).toBeGreaterThan(0)
      expect(changesPerSecond).toBeLessThan(25)
      expect(await rows.count()).toBeLessThan(60)
      expect(requests.get('/payments/logs') ?? 0).toBeGreaterThan(0)
      expect(requests.get('/payments/logs') ?? 0).toBeLessThan(2 + seconds / 0.4)
    })
  })

  test('a reader who has scrolled keeps the place while a thousand events a second come, and sees how many rows wait', async () => {
    await open({}, async (page) => {
      await withLongList(page)
      await flood(page, { perSecond, paymentIds })
      await page.goto(`${dev().dashboardUrl}/test/payments`)
      const rows = page.getByRole('table', { name: 'Payments', exact: true }).getByRole('row')
      await rows.nth(5).waitFor()
      await page.evaluate(() => window.scrollTo(0, 2_000))
      await page.getByRole('button', { name: /new payments$/ }).waitFor()
      const place = () => page.evaluate(() => [window.scrollY, document.querySelector('tbody')?.clientHeight])
      const before = await place()
      await afterEvents(page, perSecond)
      expect(await place()).toEqual(before)
      await page.unrouteAll({ behavior: 'ignoreErrors' })
      await page.getByLabel('Status', { exact: true }).selectOption('settlement_failed')
      await page.getByRole('button', { name: /new payments$/ }).waitFor({ state: 'detached' })
    })
  })

  /** Opens the list of payments, whose refreshes fail without a filter while `isDown` says so, and waits until it says that and no more events come. */
  async function withStaleList(page: Page, isDown: () => boolean) {
    await flood(page, { perSecond: 50, paymentIds, most: 200 })
    let isLoaded = false
    await page.route('**/payments/logs?*', (route) =>
      isLoaded && isDown() && !route.request().url().includes('status=') ? route.abort() : route.fallback(),
    )
    await page.goto(`${dev().dashboardUrl}/test/payments`)
    await page.getByRole('table', { name: 'Payments', exact: true }).getByRole('row').nth(1).waitFor()
    isLoaded = true
    const stale = page.getByText('The list could not be refreshed: newer payments may be missing.')
    await stale.waitFor()
    await page.waitForFunction(() => ((globalThis as { flooded?: number }).flooded ?? 0) >= 200)
    return stale
  }

  test('a refresh that failed is repeated although nothing more happens', async () => {
    await open({}, async (page) => {
      let isDown = true
      let requestedAt = performance.now()
      page.on('request', (request) => {
        if (request.url().includes('/payments/logs?')) requestedAt = performance.now()
      })
      const stale = await withStaleList(page, () => isDown)
      // Longer than the delays within a refresh, so that only a retry brings the next one.
      await expect.poll(() => performance.now() - requestedAt).toBeGreaterThan(1_500)
      isDown = false
      await stale.waitFor({ state: 'detached' })
    })
  })

  test('a list with another filter does not say that the refresh of the first one failed', async () => {
    await open({}, async (page) => {
      const stale = await withStaleList(page, () => true)
      await page.getByLabel('Status', { exact: true }).selectOption('settled')
      await stale.waitFor({ state: 'detached' })
    })
  })

  test('the retries of a refresh that failed end with its list', async () => {
    await open({}, async (page) => {
      await page.clock.install()
      const stale = await withStaleList(page, () => true)
      await page.getByLabel('Status', { exact: true }).selectOption('settled')
      await stale.waitFor({ state: 'detached' })
      const requested: string[] = []
      page.on('request', (request) => requested.push(request.url()))
      await page.clock.fastForward(6_000)
      await page.evaluate(() => undefined)
      expect(requested.filter((url) => url.includes('/payments/logs?') && !url.includes('status='))).toEqual([])
    })
  })

  test('a list of payments whose refresh failed is refreshed by the next events, and says so until then', async () => {
    await open({}, async (page) => {
      await withLongList(page)
      await flood(page, { perSecond: 50, paymentIds })
      let isDown = false
      await page.route('**/payments/logs?*', (route) => (isDown ? route.abort() : route.fallback()))
      await page.goto(`${dev().dashboardUrl}/test/payments`)
      await page.getByRole('table', { name: 'Payments', exact: true }).getByRole('row').nth(5).waitFor()
      isDown = true
      const stale = page.getByText('The list could not be refreshed: newer payments may be missing.')
      await stale.waitFor()
      isDown = false
      // Three seconds of the page: sooner than a refresh is repeated without events.
      await afterEvents(page, 150)
      expect(await stale.count()).toBe(0)
    })
  })

  test('a thousand events a second make Home read each of its figures once a second', async () => {
    await open({}, async (page) => {
      await flood(page, { perSecond, paymentIds })
      await page.goto(`${dev().dashboardUrl}/test`)
      await page.getByRole('table', { name: 'Newest payments' }).getByRole('row').nth(1).waitFor()
      const { changesPerSecond, seconds, requests } = await during(page, 3 * perSecond)
      expect(changesPerSecond).toBeLessThan(25)
      expect(requests.get('/payments/statistics') ?? 0).toBeGreaterThan(0)
      for (const [path, count] of requests)
        expect([path, count <= 2 + seconds / (path === '/payments/logs' ? 0.4 : 1)]).toEqual([path, true])
    })
  })

  test('a list whose reading takes longer than a second is read to its end while events go on coming', async () => {
    await open({}, async (page, { faults }) => {
      await flood(page, { perSecond, paymentIds })
      let readings = 0
      const ended: string[] = []
      page.on('requestfailed', (request) => ended.push(request.url()))
      await page.route('**/registry/**', async (route) => {
        readings += 1
        if (readings > 1) await afterEvents(page, 2 * perSecond)
        await route.fulfill({ response: await route.fetch() }).catch(() => undefined)
      })
      await page.goto(`${dev().dashboardUrl}/test/routes`)
      await page.getByRole('heading', { level: 1, name: 'Routes' }).waitFor()
      await expect.poll(() => readings).toBeGreaterThan(2)
      expect(ended).toEqual([])
      expect(faults).toEqual([])
      // An answer that waits for events would fail when the page closes.
      await page.unrouteAll({ behavior: 'ignoreErrors' })
    })
  })
}
