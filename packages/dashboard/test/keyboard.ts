import type { Locator, Page } from 'playwright-core'

/** More stops than any page has. */
const stopsMax = 150

/** Presses Tab until the element has the focus. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor()
  for (let stop = 0; stop < stopsMax; stop += 1) {
    if (await target.evaluate((element) => element === document.activeElement)) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`the key Tab does not lead to ${target}`)
}

/** Presses a button or a link. */
export async function pressByKeyboard(page: Page, target: Locator): Promise<void> {
  await tabTo(page, target)
  await page.keyboard.press('Enter')
}

/** Replaces the text of a field, or chooses the first option of a list that begins with the text. */
export async function typeInto(page: Page, field: Locator, text: string): Promise<void> {
  await tabTo(page, field)
  const isList = await field.evaluate((element) => element.tagName === 'SELECT')
  if (!isList) await page.keyboard.press('Control+a')
  await page.keyboard.type(text)
}
