/**
 * Removes other platforms' libraries from the packages in `modules`; returns the removed folders.
 */
export const pruneModules: (
  modules: string,
  machine?: { readonly platform: string; readonly arch: string },
) => ReadonlyArray<string>
