import { expect, test } from 'vitest'
import type { Stage } from './people-scenarios.ts'
import { openReceiver } from './receiver.ts'

/** What people do with vaults and webhooks: share, seal and verify, replay. */
export function workScenarios({ dev, purserOf, open }: Stage): void {
  test('a vault is shared by a token that is listed and revoked, sealed, and verified item by item', async () => {
    const purser = purserOf()
    const { id } = await purser.vaults.create({ description: 'Forecast <i>for a payer</i>', ttl: '24h' })
    await purser.vaults.documents.add(id, { name: 'forecast.json', data: { celsius: 21 } })
    const script = new TextEncoder().encode('<script>document.title = "owned"</script>')
    await purser.vaults.files.add(id, script, { name: 'page.html', mimeType: 'text/html' })
    await open({}, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/test/vaults/${id}`)
      await page.getByText('Forecast <i>for a payer</i>').first().waitFor()

      await page.getByRole('button', { name: 'Share' }).click()
      const sheet = page.getByRole('dialog')
      await sheet.getByRole('button', { name: 'Create a read token' }).click()
      await sheet.getByText('This token is shown once').waitFor()
      const [token = ''] = /vat_\S+/.exec(await sheet.locator('code').last().innerText()) ?? []
      const read = () =>
        fetch(`${dev().baseUrl}/vaults/${id}`, { headers: { authorization: `Bearer ${token.replace(/"$/, '')}` } })
      expect((await read()).status).toBe(200)
      await sheet.getByRole('button', { name: /^Revoke / }).click()
      await expect.poll(async () => (await read()).status).toBe(401)
      await sheet.getByText('Valid read tokens').waitFor({ state: 'detached' })
      await sheet.getByRole('button', { name: 'Close' }).last().click()

      await page.getByRole('link', { name: 'page.html', exact: true }).click()
      await page.getByLabel('Content of page.html').getByText('document.title').waitFor()
      expect(await page.title()).not.toContain('owned')

      await page.getByRole('button', { name: 'Seal' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Seal 2 items permanently' }).click()
      await page.getByRole('button', { name: 'Verify here' }).click()
      await page.getByText('Verified: all 2 items are exactly what was sealed.').waitFor()
      expect((await purser.vaults.get(id)).status).toBe('sealed')
      expect(faults).toEqual([])
    })
  })

  test('a delivery that failed shows what came back, and is sent again with the same event', async () => {
    const received: string[] = []
    const receiver = await openReceiver((request, response) => {
      received.push(String(request.headers['webhook-id']))
      response.writeHead(received.length === 1 ? 500 : 200).end(received.length === 1 ? 'out of <b>order</b>' : 'fine')
    })
    const purser = purserOf()
    const webhook = await purser.webhooks.create({ url: `http://${receiver.host}/hook`, events: ['vault.sealed'] })
    try {
      await purser.webhooks.test(webhook.id)
      await expect.poll(() => received.length).toBeGreaterThan(0)
      await open({}, async (page, { faults }) => {
        await page.goto(`${dev().dashboardUrl}/test/webhooks/${webhook.id}`)
        await page.getByRole('row').filter({ hasText: '500' }).first().click()
        const sheet = page.getByRole('dialog')
        await sheet.getByText('out of <b>order</b>').waitFor()
        await sheet.getByRole('button', { name: 'Send it again' }).click()
        await expect.poll(() => received.length).toBeGreaterThan(1)
        await page.getByRole('row').filter({ hasText: 'Delivered' }).first().waitFor()
        expect(new Set(received).size).toBe(1)
        expect(faults).toEqual([])
        await page.keyboard.press('Escape')
        await page.route('**/replay', (route) => route.fulfill({ status: 400, json: {} }))
        await page.getByRole('button', { name: 'Replay failed' }).click()
        const replay = page.getByRole('dialog', { name: 'Replay what failed' })
        await replay.getByRole('alert').waitFor()
        expect(await replay.getByRole('button', { name: 'Send them again' }).isDisabled()).toBe(true)
      })
    } finally {
      await purser.webhooks.delete(webhook.id)
      receiver.close()
    }
  })

  test('what a person does leaves no secret in the storage of the browser', async () => {
    await open({}, async (page, _, context) => {
      await page.goto(`${dev().dashboardUrl}/test/keys`)
      await page.getByRole('button', { name: 'Create a test key' }).click()
      const sheet = page.getByRole('dialog')
      await sheet.getByLabel('Name').fill('Storage')
      await sheet.getByRole('button', { name: 'Create the key' }).click()
      await sheet.getByText('This key is shown once').waitFor()
      const apiKey = await sheet.locator('pre').innerText()
      await sheet.getByRole('button', { name: 'I saved the key' }).click()
      const stored = JSON.stringify([
        await context.storageState({ indexedDB: true }),
        await page.evaluate(() => JSON.stringify(sessionStorage)),
        page.url(),
      ])
      expect(stored).toContain('purser-organisation')
      expect(stored).not.toContain(apiKey)
      expect(stored).not.toMatch(/svc_(?:test|live)_sk_\w{8}|whsec_|vat_/)
    })
  })
}
