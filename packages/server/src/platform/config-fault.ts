/** A setting that cannot be used, with what to set instead. Never repeats the value, which may be a secret. */
export interface ConfigFault {
  readonly name: string
  readonly fault: string
  readonly how: string
}
