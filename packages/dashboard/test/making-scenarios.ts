import type { Locator, Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { expectAccessible, inspected } from './accessible.ts'
import type { DemoData } from './demo-data.ts'
import { pressByKeyboard, tabTo, typeInto } from './keyboard.ts'
import type { Stage } from './people-scenarios.ts'

/** What a person makes by the keyboard alone, each step of it accessible and fit for a phone. */
export function makingScenarios({ dev, purserOf, open }: Stage, demoData: () => Promise<DemoData>): void {
  /** Opens a page and, by the button of this name, a sheet or dialog. Escape closes it, and the focus is where it was. */
  async function opened(page: Page, path: string, button: string | RegExp): Promise<Locator> {
    await page.goto(`${dev().dashboardUrl}/test${path}`)
    const opener = page.getByRole('main').getByRole('button', { name: button }).first()
    const dialog = page.getByRole('dialog')
    await pressByKeyboard(page, opener)
    await dialog.waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await expect.poll(() => opener.evaluate((element) => element === document.activeElement)).toBe(true)
    await page.keyboard.press('Enter')
    await dialog.waitFor()
    await expectAccessible(page, `${path}: ${button}`)
    return dialog
  }

  const button = (within: Locator | Page, name: string | RegExp) => within.getByRole('button', { name })

  test('a person sends money by the keyboard alone: a quote, then the act, and the transfer arrives', async () => {
    await demoData()
    const toAddress = '0x9b1deb4d3b7d4bad9bdd2b0d7b3dcb6dabcdef03'
    await open(inspected, async (page, { faults }) => {
      const sheet = await opened(page, '/transfers', 'Send money')
      await typeInto(page, sheet.getByLabel('From'), 'Treasury')
      await typeInto(page, sheet.getByLabel('Amount'), '1.5')
      await typeInto(page, sheet.getByLabel('To address'), toAddress)
      await typeInto(page, sheet.getByLabel('Reference'), 'Order <i>7</i>')
      await pressByKeyboard(page, button(sheet, 'Get a quote'))
      await sheet.getByText('It cannot be canceled once it is sent.').waitFor()
      await expectAccessible(page, 'transfer: quote')
      await pressByKeyboard(page, button(sheet, 'Send 1.50 USDC'))
      const record = page.getByRole('dialog', { name: 'Transfer' })
      await record.getByText('Arrived', { exact: true }).first().waitFor()
      await record.getByText('Order <i>7</i>').waitFor()
      await expectAccessible(page, 'transfer: made')
      expect(faults).toEqual([])
    })
  })

  test('a person adds a bank account and withdraws to it by the keyboard alone', async () => {
    await demoData()
    await open(inspected, async (page, { faults }) => {
      const adding = await opened(page, '/bank-accounts', 'Add a bank account')
      await typeInto(page, adding.getByLabel('Account holder'), 'Keyboard Research Limited')
      await typeInto(page, adding.getByLabel('Currency'), 'EUR')
      await typeInto(page, adding.getByLabel('IBAN'), 'DE89 3704 0044 0532 0130 00')
      await typeInto(page, adding.getByLabel('BIC'), 'COBADEFFXXX')
      await pressByKeyboard(page, button(adding, 'Add the EUR account'))
      await page.getByRole('row').filter({ hasText: 'Keyboard Research Limited' }).waitFor()

      const sheet = await opened(page, '/withdrawals', 'Withdraw to a bank')
      await typeInto(page, sheet.getByLabel('From'), 'Treasury')
      await typeInto(page, sheet.getByLabel('Amount'), '50')
      await typeInto(page, sheet.getByLabel('To', { exact: true }), 'Keyboard Research')
      await typeInto(page, sheet.getByLabel('Reference'), 'Keyboard 1')
      await pressByKeyboard(page, button(sheet, 'Review'))
      await sheet.getByText('It cannot be reversed.').waitFor()
      await expectAccessible(page, 'withdrawal: review')
      await pressByKeyboard(page, button(sheet, 'Withdraw 50 USDC'))
      await page.getByRole('dialog', { name: 'Withdrawal' }).getByText('Keyboard 1').waitFor()
      await expectAccessible(page, 'withdrawal: made')
      expect(faults).toEqual([])
    })
    const [newest] = await purserOf().withdrawals.list({ limit: 1 }).toArray({ limit: 1 })
    expect(newest).toMatchObject({ amount: '50', token: 'USDC', reference: 'Keyboard 1' })
  })

  test('a person refunds a part of a payment by the keyboard alone, and the payment says so', async () => {
    const purser = purserOf()
    await demoData()
    const { id: paymentId } = await purser.test.payments.create({ walletId: dev().walletId, price: '0.03' })
    await expect.poll(async () => (await purser.payments.get(paymentId)).status).toBe('settled')
    await open(inspected, async (page, { faults }) => {
      const dialog = await opened(page, `/payments/${paymentId}`, 'Refund')
      await typeInto(page, dialog.getByLabel('Amount'), '0.02')
      await typeInto(page, dialog.getByLabel('From'), 'Treasury')
      await typeInto(page, dialog.getByLabel('Reason'), 'Late')
      await pressByKeyboard(page, button(dialog, 'Refund 0.02 USDC'))
      await page.getByText('Refund of 0.02 USDC is on its way').waitFor()
      await page
        .getByRole('definition')
        .filter({ hasText: /^0\.02 USDC$/ })
        .waitFor()
      expect(faults).toEqual([])
    })
    expect((await purser.payments.get(paymentId)).refundedAmount).toBe('0.02')
  })

  test('a person changes the policy of a wallet by the keyboard alone, and reads in words what it allows', async () => {
    const { walletId = '' } = await demoData()
    const before = await purserOf().wallets.master.policy.get(walletId)
    await open(inspected, async (page, { faults }) => {
      const sheet = await opened(page, `/wallets/${walletId}`, 'Change the policy')
      await typeInto(page, sheet.getByLabel('Per transaction'), '9x')
      await sheet.getByText('Write a decimal amount').waitFor()
      await expectAccessible(page, 'policy: fault')
      await typeInto(page, sheet.getByLabel('Per transaction'), '90')
      await sheet.getByText('USDC: at most 90 per transaction').waitFor()
      await pressByKeyboard(page, button(sheet, 'Set this policy'))
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await page.getByRole('main').getByText('USDC: at most 90 per transaction').waitFor()
      expect(faults).toEqual([])
    })
    const after = await purserOf().wallets.master.policy.get(walletId)
    expect(after.policy).toEqual({
      ...before.policy,
      tokens: { ...before.policy?.tokens, USDC: { ...before.policy?.tokens?.USDC, perTransaction: '90' } },
    })
  })

  test('a person creates a vault and adds a file to it by the keyboard alone', async () => {
    await open(inspected, async (page, { faults }) => {
      const dialog = await opened(page, '/vaults', 'Create a vault')
      await typeInto(page, dialog.getByLabel('Description'), 'By the keyboard')
      await typeInto(page, dialog.getByLabel('Keep it for'), '7')
      await pressByKeyboard(page, button(dialog, 'Create the vault'))
      await page.getByRole('heading', { level: 1, name: 'By the keyboard' }).waitFor()
      const choosing = page.waitForEvent('filechooser')
      await pressByKeyboard(page, button(page, 'Add a file'))
      const content = Buffer.from('celsius,21\n')
      await (await choosing).setFiles({ name: 'forecast.csv', mimeType: 'text/csv', buffer: content })
      await pressByKeyboard(page, page.getByRole('link', { name: 'forecast.csv', exact: true }))
      await page.getByLabel('Content of forecast.csv').getByText('celsius,21').waitFor()
      await expectAccessible(page, 'vault: file')
      expect(faults).toEqual([])
    })
  })

  test('a person adds an endpoint for chosen events by the keyboard alone, and saves its secret', async () => {
    await open(inspected, async (page, { faults }) => {
      const url = 'https://hooks.example.com/by-keyboard'
      const sheet = await opened(page, '/webhooks', 'Add an endpoint')
      await typeInto(page, sheet.getByLabel('Address'), 'hooks.example.com')
      await sheet.getByText('An address begins with https://.').waitFor()
      await typeInto(page, sheet.getByLabel('Address'), url)
      await tabTo(page, sheet.getByLabel(/^Every event/))
      await page.keyboard.press('Space')
      await tabTo(page, sheet.getByLabel('vault.sealed'))
      await page.keyboard.press('Space')
      await expectAccessible(page, 'webhook: events')
      await pressByKeyboard(page, button(sheet, 'Add the endpoint'))
      await sheet.getByText('whsec_').waitFor()
      await expectAccessible(page, 'webhook: secret')
      await pressByKeyboard(page, button(sheet, 'I saved the secret'))
      await page.getByRole('heading', { level: 1 }).waitFor()
      expect(await page.content()).not.toContain('whsec_')
      expect(faults).toEqual([])
      const [newest] = (await purserOf().webhooks.list({ limit: 100 }).page()).items.filter((one) => one.url === url)
      expect(newest?.events).toEqual(['vault.sealed'])
    })
  })
}
