#include "session/config_text.h"

#include "base/variable.h"

pki_config_text pki_config_text_of(const char *given, const char *field, const char *variable)
{
    if (given)
        return (pki_config_text){*given ? given : NULL, field};
    return (pki_config_text){pki_variable(variable), variable};
}
