/** A broken guarantee of the service, found by a seed. */
export class Violation extends Error {
  override readonly name = 'Violation'
}
