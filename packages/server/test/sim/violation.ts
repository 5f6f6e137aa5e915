/** What a seed found: that the service broke what it promises. */
export class Violation extends Error {
  override readonly name = 'Violation'
}
