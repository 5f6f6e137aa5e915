import type { Purser } from '@purser/sdk'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { sql } from '../../server/src/platform/db/db.ts'
import type { DemoData } from './demo-data.ts'
import type { Stage } from './people-scenarios.ts'
import { show, shown } from './stage.ts'

/** Says in `owned` that it was run. */
const image = '<img src=x onerror=globalThis.owned=1>'
const markup = `${image}<svg onload=globalThis.owned=1><script>globalThis.owned=1</script>`
/** Reads as `photoexe.jpg` where the override turns what follows it. */
const turned = 'photo\u202Egpj.exe'
const shownTurned = 'photo[U+202E]gpj.exe'

/** Texts and files of strangers, in pages without the content security policy: the pages themselves must not run them. */
export function strangerScenarios({ dev, purserOf, open }: Stage, demoData: () => Promise<DemoData>): void {
  /** Writes the texts wherever a stranger, a customer or an agent writes one, and returns the pages that show them. */
  async function writeTexts(purser: Purser, walletId: string): Promise<readonly string[]> {
    const { apiKey, server } = dev()
    const name = `${markup} ${turned}`
    const master = await purser.wallets.master.create({ chain: 'base', name, supportedTokens: ['USDC'] })
    const child = await purser.wallets.children.create(master.id, { name })
    await purser.organisations.apiKeys.create({ name, environment: 'test' })
    const vault = await purser.vaults.create({ description: name, ttl: '24h' })
    await purser.vaults.documents.add(vault.id, { name: `${image} ${turned}`, data: { [markup]: turned } })
    await purser.vaults.files.add(vault.id, new TextEncoder().encode(markup), {
      name: `${image} ${turned}`,
      mimeType: 'text/html',
    })
    await purser.vaults.emit(vault.id, { event: 'research.progress', payload: { [markup]: turned } })
    const { paymentId } = await purser.payments.verify({
      protocol: 'x402',
      credential: 'stub_payment_accepted',
      price: '0.01',
      currency: 'USD',
      walletId: dev().walletId,
      resource: `https://api.example.com/${image}`,
      method: 'GET',
      description: name,
      reportsDelivery: false,
    })
    await purser.registry.snapshots.create({
      host: 'api.example.com',
      method: 'GET',
      routePattern: '/of-strangers',
      queryParams: [{ name: image, type: 'string', required: true, example: turned }],
      amount: '0.01',
      protocol: 'x402',
    })
    const { items: routes } = await purser.registry.routes.list({ limit: 100 }).page()
    const route = routes.find(({ routePattern }) => routePattern === '/of-strangers')
    const transfer = await purser.transfers.create({
      fromWalletId: walletId,
      fromToken: 'USDC',
      toAddress: '0x9b1deb4d3b7d4bad9bdd2b0d7b3dcb6dabcdef04',
      toChain: 'base',
      toToken: 'USDC',
      amount: '0.01',
      reference: `${image} ${turned}`,
    })
    const member = await purser.organisations.members.add({ email: 'stranger@example.com', role: 'viewer' })
    await server.deps.db.run(sql`update accounts set name = ${name} where id = ${member.accountId}`)
    await fetch(`${dev().baseUrl}/vaults/${encodeURIComponent(markup)}`, {
      headers: { authorization: `Bearer ${apiKey}`, 'user-agent': image },
    })
    return [
      '/wallets',
      `/wallets/${master.id}`,
      `/wallets/${master.id}?view=children`,
      `/wallets/${child.id}`,
      '/keys',
      '/vaults',
      `/vaults/${vault.id}`,
      '/',
      '/payments',
      `/payments/${paymentId}`,
      '/routes',
      `/routes?open=${route?.id}`,
      '/transfers',
      `/transfers/${transfer.id}`,
      '/team',
      '/events',
      '/logs',
      '/audit-log',
      '/quick-start',
    ]
  }

  /** What of the texts the page took for more than text: elements that it made, scripts that ran, characters that turn others. */
  async function takenOn(page: Page) {
    const inEachFrame = await Promise.all(
      page.frames().map((frame) =>
        frame
          .evaluate(() => ({
            owned: 'owned' in globalThis,
            elements: document.querySelectorAll('img[src="x"], svg[onload], script:not([src])').length,
            turned: /[\u202A-\u202E\u2066-\u2069]/.test(document.body?.innerText ?? ''),
          }))
          .catch(() => undefined),
      ),
    )
    return inEachFrame.filter((one) => one?.owned === true || one?.elements !== 0 || one.turned)
  }

  test('texts of strangers with markup and overrides of direction are shown as text, on every page that has them', async () => {
    const { walletId = '' } = await demoData()
    const purser = purserOf()
    const paths = await writeTexts(purser, walletId)
    await open({ bypassCSP: true, viewport: { width: 1440, height: 900 } }, async (page, { faults }) => {
      const shown: string[] = []
      for (const path of paths) {
        await show(page, `${dev().dashboardUrl}/test${path}`)
        expect([path, await takenOn(page)]).toEqual([path, []])
        if ((await page.locator('body').innerText()).includes(shownTurned)) shown.push(path)
      }
      // Elsewhere they are shortened, in a sheet, or no part of the page.
      for (const pattern of [
        /^\/wallets\/mwt_\w+$/,
        /^\/wallets\/cad/,
        /^\/vaults\/vlt/,
        /^\/payments\/pay/,
        /^\/keys/,
      ])
        expect([pattern, shown.some((path) => pattern.test(path))]).toEqual([pattern, true])
      expect(faults).toEqual([])
    })
  })

  test('a file of a vault that is a page, or says that it is a picture, runs nowhere: neither in its preview nor by its address', async () => {
    const purser = purserOf()
    const { id } = await purser.vaults.create({ description: 'Files of a stranger', ttl: '24h' })
    const script = new TextEncoder().encode(
      '<!doctype html><script>globalThis.owned = 1; parent.owned = 1; top.location = "/docs"</script><p>Ran</p>',
    )
    const svg = new TextEncoder().encode(
      '<svg xmlns="http://www.w3.org/2000/svg" onload="parent.owned = 1"><script>top.owned = 1</script></svg>',
    )
    const files = [
      { name: 'page.html', mimeType: 'text/html', bytes: script },
      { name: 'picture.png', mimeType: 'image/png', bytes: script },
      { name: 'drawing.svg', mimeType: 'image/svg+xml', bytes: svg },
      { name: 'page.pdf', mimeType: 'application/pdf', bytes: script },
    ]
    for (const { name, mimeType, bytes } of files) await purser.vaults.files.add(id, bytes, { name, mimeType })
    await open({ bypassCSP: true }, async (page, _, context) => {
      const url = `${dev().dashboardUrl}/test/vaults/${id}`
      await page.goto(url)
      for (const { name } of files) {
        await page.getByRole('link', { name, exact: true }).click()
        await page.locator('[aria-expanded="true"]').filter({ hasText: name }).waitFor()
        await shown(page)
        expect([name, await takenOn(page)]).toEqual([name, []])
        expect(page.url()).toContain(url)
      }
      for (const { url: address, name } of (await purser.vaults.get(id)).files) {
        const alone = await context.newPage()
        const downloading = alone.waitForEvent('download')
        await alone.goto(address ?? '').catch(() => undefined)
        expect((await downloading).suggestedFilename()).toBe(name)
        expect([name, alone.url()]).toEqual([name, 'about:blank'])
        await alone.close()
      }
    })
  })
}
